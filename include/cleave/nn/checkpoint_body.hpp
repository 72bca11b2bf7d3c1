// Writes and reads checkpoints.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cleave/comm/agree.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/file_progress.hpp>
#include <cleave/core/open_file.hpp>
#include <cleave/interop/shared_array_file.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/nn/checkpoint.hpp>
#include <cleave/nn/safetensors.hpp>
#include <cleave/placement/owned_boxes.hpp>
#include <cleave/tensor/overlap.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::nn {

namespace detail {

/// Replicas divide the elements of a shard of at least this size; one replica writes a smaller one.
inline constexpr index_t least_shared_bytes = index_t{1} << 14;

/// Calls f(global indices, the same elements as a box of the rank's part) for what it holds.
template <class F>
void each_held_box(const StateEntry& entry, const F& f) {
  const Box whole = Box::of(entry.shape);
  if (entry.layout == nullptr) return f(whole, whole);
  if (entry.mesh->is_member())
    each_owned_box(*entry.layout, entry.shape, entry.mesh->extents(), entry.mesh->coordinate(), f);
}

/// The global indices that this rank has when it writes. @pre it is in the mesh
inline Box held_box(const StateEntry& entry) {
  if (entry.layout == nullptr) return Box::of(entry.shape);
  return owned_box(entry.layout->with_boxes(), entry.shape, entry.mesh->extents(),
                   entry.mesh->coordinate());
}

/// The global indices that this rank writes, if any. @param number  of the tensor in the state
inline std::optional<Box> owned_piece(const StateEntry& entry, index_t number, int world_rank) {
  if (entry.layout == nullptr)
    return world_rank == 0 ? std::optional(Box::of(entry.shape)) : std::nullopt;
  if (!entry.mesh->is_member()) return std::nullopt;
  const Shape &at = entry.mesh->coordinate(), &extents = entry.mesh->extents();
  Box box = held_box(entry);
  index_t replicas = 1, replica = 0;
  int longest = 0;
  for (int a = 0; a < entry.layout->axes; ++a) {
    if ((*entry.layout)[a].shards()) continue;
    replica = replica * extents[a] + at[a];
    replicas *= extents[a];
  }
  for (int d = 1; d < box.dims(); ++d)
    if (box.extent(d) > box.extent(longest)) longest = d;
  if (box.dims() == 0 || box.volume() * index_t(size_of(entry.dtype)) < least_shared_bytes) {
    if (replica != number % replicas) return std::nullopt;
  } else {
    const IndexRange range = shard_range(box.extent(longest), replicas, replica);
    box.end[longest] = box.begin[longest] + range.end;
    box.begin[longest] += range.begin;
  }
  return box.volume() > 0 ? std::optional(box) : std::nullopt;
}

inline std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  DIR* const open = ::opendir(directory.c_str());
  if (open == nullptr) return names;
  while (const dirent* const entry = ::readdir(open)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(open);
  std::sort(names.begin(), names.end());
  return names;
}

inline bool exists(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0;
}
inline bool is_directory(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

inline std::string part_name(int rank, int ranks) {
  char name[64];
  std::snprintf(name, sizeof name, "part-%05d-of-%05d.safetensors", rank, ranks);
  return name;
}

/// Makes an empty directory for the files of this attempt; removes those of an interrupted one.
inline void make_partial(const std::string& path, const std::string& partial) {
  if (exists(path)) file_error(path, "exists already; choose another name");
  for (const std::string& name : names_in(partial)) ::unlink((partial + "/" + name).c_str());
  if (::mkdir(partial.c_str(), 0777) != 0 && errno != EEXIST)
    file_error(partial, std::string("cannot be created: ") + std::strerror(errno));
}

inline void write_part(const std::string& path, const StateDict& state, int rank, int ranks) {
  FileIndex index;
  index.path = path;
  index.files = ranks;
  index.notes = state.notes;
  std::vector<std::vector<std::byte>> elements;
  std::size_t end = 0;
  index_t number = 0;
  for (const StateEntry& entry : state.tensors) {
    const std::optional<Box> box = owned_piece(entry, number++, rank);
    HostElements held;  // redistributed by all ranks, whether or not they write
    if (entry.fetch_box != nullptr) held = entry.fetch_box(entry);
    if (!box) continue;
    Piece piece;
    piece.box = *box;
    piece.name = entry.name;
    piece.dtype = entry.dtype;
    piece.shape = entry.shape;
    piece.begin = end;
    end += piece.bytes();
    if (entry.fetch_box == nullptr) held = entry.fetch(entry.tensor.get());
    const ConstView part = held.view[piece.box.relative_to(held_box(entry).begin)];
    elements.emplace_back(piece.bytes());
    pack_view(part, elements.back().data());
    piece.checksum = checksum_of_bytes(elements.back().data(), elements.back().size());
    index.pieces.push_back(piece);
  }
  const cleave::detail::OpenFile file("save_checkpoint", path, O_CREAT | O_TRUNC | O_WRONLY);
  const std::string header = write_header(index);
  std::size_t at = 0;
  const auto write = [&](const void* data, std::size_t bytes) {
    file.write_at(at, data, bytes);
    at += bytes;
  };
  write(header.data(), header.size());
  cleave::detail::FileTransfer transfer("save_checkpoint", end);
  for (const auto& bytes : elements)
    transfer.in_pieces(bytes.size(), [&](std::size_t first, std::size_t count) {
      write(bytes.data() + first, count);
    });
  file.sync();
}

/// The headers of all files of a checkpoint. @throws Error if one is missing
inline std::vector<FileIndex> read_headers(const std::string& path) {
  if (!is_directory(path)) return {read_header(path)};
  std::vector<FileIndex> files;
  for (const std::string& name : names_in(path))
    if (name.size() > 12 && name.compare(name.size() - 12, 12, ".safetensors") == 0)
      files.push_back(read_header(path + "/" + name));
  if (files.empty()) file_error(path, "has no .safetensors files");
  const int expected = files.front().files;
  for (int rank = 0; expected > 1 && rank < expected; ++rank)
    if (!exists(path + "/" + part_name(rank, expected)))
      file_error(path + "/" + part_name(rank, expected), "is missing");
  return files;
}

inline std::string array_text(DType dtype, const Shape& shape) {
  return short_name_of(dtype) + to_string(shape);
}

/// How many elements this rank holds.
inline index_t held_elements(const StateEntry& entry) {
  index_t held = 0;
  each_held_box(entry, [&](const Box& box, const Box&) { held += box.volume(); });
  return held;
}

/// Reads this rank's elements of an array that is whole in a file, without checksums, in place:
/// only if they are long runs of it. @return whether it did
inline bool read_in_place(const FileIndex& file, const Piece& piece, const StateEntry& entry,
                          const View& to, cleave::detail::FileTransfer& transfer) {
  if (piece.has_checksum || entry.layout == nullptr || !to.contiguous() ||
      !(piece.box == Box::of(piece.shape)) ||
      !cleave::detail::has_long_runs(*entry.layout, entry.shape, entry.mesh->extents(),
                                     index_t(size_of(entry.dtype))))
    return false;
  const cleave::detail::OpenFile open("load_checkpoint", file.path, O_RDONLY);
  cleave::detail::read_shared_array(transfer, open, file.data + piece.begin,
                                    {*entry.layout, *entry.mesh, entry.shape}, to);
  return true;
}

/// Reads this rank's elements of one tensor.
inline void load_entry(const std::string& path, const std::vector<FileIndex>& files,
                       const StateEntry& entry, cleave::detail::FileTransfer& transfer) {
  bool is_found = false;
  const bool is_member = entry.mesh == nullptr || entry.mesh->is_member();
  const HostElements to = entry.fetch(entry.tensor.get());
  cleave::detail::require_distinct_elements("load_checkpoint", to.view);
  index_t missing = held_elements(entry);
  std::vector<Box> seen;
  for (const FileIndex& file : files)
    for (const Piece& piece : file.pieces) {
      if (piece.name != entry.name) continue;
      is_found = true;
      if (piece.dtype != entry.dtype || !(piece.shape == entry.shape))
        file_error(file.path, "has '" + entry.name + "' as " +
                                  array_text(piece.dtype, piece.shape) + ", not as " +
                                  array_text(entry.dtype, entry.shape));
      if (!is_member || std::find(seen.begin(), seen.end(), piece.box) != seen.end()) continue;
      seen.push_back(piece.box);
      if (read_in_place(file, piece, entry, to.view, transfer)) {
        missing = 0;
        continue;
      }
      const index_t before = missing;
      std::optional<std::vector<std::byte>> bytes;  // read if an element is needed
      each_held_box(entry, [&](const Box& box, const Box& local) {
        const Box both = intersect(box, piece.box);
        if (both.volume() == 0) return;
        if (!bytes) bytes = read_piece(file, piece);
        const ConstView from = ConstView::dense(bytes->data(), piece.dtype, piece.box.extents());
        strided_copy(Host{}, from[both.relative_to(piece.box.begin)],
                     to.view[local][both.relative_to(box.begin)]);
        missing -= both.volume();
      });
      transfer.add(std::uint64_t(before - missing) * size_of(entry.dtype));
    }
  if (!is_found && entry.shape.product() != 0)
    file_error(path, "has no tensor '" + entry.name + "'");
  if (missing != 0)
    file_error(path, "lacks " + std::to_string(missing) + " elements of '" + entry.name + "'");
  entry.store(entry.tensor.get(), to);
  if (entry.leaf != nullptr) ++entry.leaf->version;
}

inline void require_known(const std::vector<FileIndex>& files, const StateDict& state) {
  for (const FileIndex& file : files)
    for (const Piece& piece : file.pieces)
      if (std::none_of(state.tensors.begin(), state.tensors.end(),
                       [&](const StateEntry& entry) { return entry.name == piece.name; }))
        file_error(file.path, "has a tensor '" + piece.name +
                                  "' that the state dict lacks; {.ignore_rest = true} ignores it");
}

}  // namespace detail

CLEAVE_INLINE void save_checkpoint(const World& world, const std::string& path,
                                   const StateDict& state) {
  const std::string partial = path + ".partial";
  const int rank = world.rank(), ranks = world.size();
  Communicator& group = world.communicator().host();
  const auto together = [&](bool takes_part, const auto& f) {
    cleave::detail::together(group, "save_checkpoint", "another rank could not write " + path,
                             takes_part, f);
  };
  together(rank == 0, [&] { detail::make_partial(path, partial); });
  together(true, [&] {
    detail::write_part(partial + "/" + detail::part_name(rank, ranks), state, rank, ranks);
  });
  together(rank == 0, [&] {
    cleave::detail::OpenFile("save_checkpoint", partial, O_RDONLY | O_DIRECTORY).sync();
    cleave::detail::publish("save_checkpoint", partial, path);
  });
}

CLEAVE_INLINE Notes load_checkpoint(const std::string& path, const StateDict& state,
                                    const LoadOptions& options) {
  const std::vector<detail::FileIndex> files = detail::read_headers(path);
  if (!options.ignore_rest) detail::require_known(files, state);
  std::uint64_t bytes = 0;
  for (const StateEntry& entry : state.tensors)
    bytes += std::uint64_t(detail::held_elements(entry)) * size_of(entry.dtype);
  cleave::detail::FileTransfer transfer("load_checkpoint", bytes);
  for (const StateEntry& entry : state.tensors) detail::load_entry(path, files, entry, transfer);
  return files.front().notes;
}

CLEAVE_INLINE std::string latest_checkpoint(const std::string& directory) {
  std::string latest;
  long highest = -1;
  for (const std::string& name : detail::names_in(directory)) {
    const std::size_t dash = name.rfind('-');
    if (dash == name.npos) continue;
    char* end = nullptr;
    const long number = std::strtol(name.c_str() + dash + 1, &end, 10);
    if (end == name.c_str() + dash + 1 || *end != '\0' || number <= highest) continue;
    if (!detail::is_directory(directory + "/" + name)) continue;
    highest = number;
    latest = directory + "/" + name;
  }
  return latest;
}

}  // namespace cleave::inline v0::nn
