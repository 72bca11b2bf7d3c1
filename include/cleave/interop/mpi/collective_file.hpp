// One file of a library, HDF5 or NetCDF, that all ranks of a mesh have open by MPI-IO.
//
// Collective calls of these libraries wait for all ranks. So each function first compares what the
// ranks ask for, then calls the library, and then compares the outcomes: an error is one on all
// ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>

#include <cleave/comm/agree.hpp>
#include <cleave/comm/exchange_values.hpp>
#include <cleave/comm/mpi.hpp>
#include <cleave/comm/mpi/mpi_handle.hpp>
#include <cleave/core/checksum.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/open_file.hpp>
#include <cleave/mesh/mesh_state.hpp>

namespace cleave::inline v0::detail {

/// @tparam Library  the functions create, open and close of a `Handle`, which is `none` when the
///                  file is closed; the names of the user's functions, for errors; and what is
///                  alive during each call, `Scope`
template <class Library>
class CollectiveFile {
 public:
  using Handle = typename Library::Handle;

  /// What the user called, for errors.
  struct Call {
    const char* operation;
    std::string name{};  ///< of an array or attribute; may be empty
    ErrorContext context{};
  };

  /// @collective every rank of the mesh
  CollectiveFile(const MeshState& mesh, std::string path, bool writes)
      : path_(std::move(path)),
        mesh_(mesh.describe()),
        ranks_(mesh.world_ranks()),
        world_rank_(mesh.world_rank()),
        group_(mesh.group(AxisMask((1u << unsigned(mesh.extents().dims)) - 1))),
        writes_(writes),
        exceptions_(std::uncaught_exceptions()) {
    const Call call = called(writes ? Library::create_name : Library::open_name, {});
    const Handle left_open = take_abandoned();
    meet(call, {checksum(path_), std::uint64_t(left_open != Library::none)});
    if (left_open != Library::none) attempt(call, [&] { Library::close(left_open); });
    MPI_Comm comm = mpi_handle(group());
    const int how = writes ? O_CREAT | O_TRUNC | O_RDWR : O_RDONLY;
    together(
        group(), call.operation, "another rank could not open " + path_,
        !writes || group().rank() == 0, [&] { const OpenFile file(call.operation, opened(), how); },
        call.context);
    attempt(call, [&] {
      file_ = writes ? Library::create(opened(), comm) : Library::open(opened(), comm);
    });
  }
  CollectiveFile(const CollectiveFile&) = delete;
  CollectiveFile& operator=(const CollectiveFile&) = delete;

  /// An exception that only this rank may know of must not make it wait for the others: the file
  /// stays open until they create or open it again, or MPI ends.
  ~CollectiveFile() {
    if (!is_open() || !mpi_is_running()) return;
    try {
      if (std::uncaught_exceptions() > exceptions_ && !failed_)
        abandoned().push_back({opened(), ranks_, file_});
      else finish({Library::file_name}, false);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): there is nobody to tell
    }
  }

  Handle id() const noexcept { return file_; }

  Call called(const char* operation, std::string name, std::string shape = {},
              std::string placements = {}) const {
    return {
        operation, std::move(name), {std::move(shape), std::move(placements), mesh_, world_rank_}};
  }

  /// Closes the file; one that was created replaces that of its name.
  void close() {
    if (!is_open()) return;
    const Call call = called(Library::close_name, {});
    const bool discards = writes_ && failed_;
    finish(call, writes_ && !discards);
    if (discards)
      throw Error(call.operation, path_ + " is discarded, because a call on it has failed",
                  call.context);
  }

  /// Begins a call of all ranks.
  /// @throws Error on all of them, if they do not call the same with equal arguments
  void meet(const Call& call, std::initializer_list<std::uint64_t> arguments) {
    Checksum sum;
    sum.add(checksum(std::string(call.operation)));
    sum.add(checksum(call.name));
    for (const std::uint64_t argument : arguments) sum.add(argument);
    const auto all = gather_values(group(), sum.sum, call.operation);
    const auto other =
        std::find_if(all.begin(), all.end(), [&](auto one) { return one != all[0]; });
    if (other != all.end())
      refuse(call, "ranks " + std::to_string(ranks_[0]) + " and " +
                       std::to_string(ranks_[std::size_t(other - all.begin())]) +
                       " differ in the function or in its arguments; all ranks must call the same");
  }

  /// Calls f() on all ranks. @throws Error on all of them, if one of them fails
  template <class F>
  void attempt(const Call& call, const F& f) {
    [[maybe_unused]] const typename Library::Scope scope;
    const auto named = [&] {
      try {
        f();
      } catch (const Error& error) {
        throw Error(call.operation, subject(call) + ": " + error.message());
      }
    };
    try {
      together(group(), call.operation, subject(call) + ": another rank failed", true, named,
               call.context);
    } catch (const Error&) {
      failed_ = true;
      throw;
    }
  }

  /// The largest of the ranks' numbers.
  index_t largest(index_t mine) const {
    return reduce_values(group(), ReduceOp::max, mine, "largest of the parts in a file");
  }

  /// For what all ranks find wrong.
  [[noreturn]] void refuse(const Call& call, const std::string& text) {
    failed_ = true;
    throw Error(call.operation, subject(call) + ": " + text, call.context);
  }
  void require_open(const Call& call) {
    if (!is_open()) refuse(call, "the file is closed");
  }
  void require_writable(const Call& call) {
    require_open(call);
    if (!writes_)
      refuse(call, std::string("the file is open for reading; ") + Library::create_name +
                       " writes a new one");
  }
  void require_same_ranks(const Call& call, const MeshState& mesh) {
    if (sorted(mesh.world_ranks()) != sorted(ranks_))
      refuse(call, "the array's mesh has other ranks than the file's, " + mesh_);
  }

 private:
  bool is_open() const noexcept { return file_ != Library::none; }
  Communicator& group() const { return group_->host(); }
  std::string opened() const { return writes_ ? path_ + ".partial" : path_; }
  std::string subject(const Call& call) const {
    return call.name.empty() ? path_ : path_ + ", '" + call.name + "'";
  }
  static std::vector<int> sorted(std::vector<int> ranks) {
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  struct Abandoned {
    std::string path;
    std::vector<int> ranks;
    Handle file;
  };
  static std::vector<Abandoned>& abandoned() {
    static std::vector<Abandoned> files;
    return files;
  }
  Handle take_abandoned() const {
    std::vector<Abandoned>& files = abandoned();
    const auto found = std::find_if(files.begin(), files.end(), [&](const Abandoned& file) {
      return file.path == opened() && file.ranks == ranks_;
    });
    if (found == files.end()) return Library::none;
    const Handle file = found->file;
    files.erase(found);
    return file;
  }

  /// Closes the file on all ranks, and then lets it replace the old one, or removes it.
  void finish(const Call& call, bool publishes) {
    meet(call, {std::uint64_t(publishes)});
    const bool is_first = group().rank() == 0;
    const std::string finished = opened();
    const auto remove = [&] {
      if (is_first && writes_) std::remove(finished.c_str());
    };
    try {
      attempt(call, [&] {
        Library::close(std::exchange(file_, Library::none));
        if (publishes) OpenFile(call.operation, finished, O_WRONLY).sync();
      });
      if (!publishes) return remove();
      together(
          group(), call.operation, path_ + ": another rank failed", is_first,
          [&] { publish(call.operation, finished, path_); }, call.context);
    } catch (const Error&) {
      remove();
      throw;
    }
  }

  std::string path_, mesh_;
  std::vector<int> ranks_;  ///< of the world, in the order of the group
  int world_rank_;
  std::shared_ptr<Communicator> group_;
  bool writes_;
  bool failed_ = false;  ///< a call, on all ranks
  int exceptions_;       ///< in progress when the file was opened
  Handle file_ = Library::none;
};

}  // namespace cleave::inline v0::detail
