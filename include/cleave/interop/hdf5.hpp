// DTensors and attributes in HDF5 files: one file, which all ranks write and read, each its own
// elements, under any placements.
//
//     auto f = hdf5::create("flow.h5", mesh);
//     f.write("fluid/density", x, {.chunk = {64, 64}, .deflate = 4});
//     f.write_attribute("fluid/density", "unit", "kg/m3");
//     f.close();
//
//     const auto y = hdf5::open("flow.h5", mesh).read<double, 2>("fluid/density", mesh,
//     Shard<1>{});
//
// For ranks that are MPI processes; requires CLEAVE_HAS_HDF5. h5py reads and writes the same types.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/placement/placement.hpp>
#if CLEAVE_HAS_HDF5
#include <cleave/interop/mpi/file_arrays.hpp>
#include <cleave/interop/mpi/hdf5_arrays.hpp>
#include <cleave/interop/mpi/hdf5_attributes.hpp>
#include <cleave/interop/mpi/hdf5_file.hpp>
#endif

namespace cleave::inline v0::hdf5 {

#if CLEAVE_HAS_HDF5

/// A file that all ranks of a mesh have open. A handle: copies share the file.
///
/// All functions are collective: every rank of the mesh calls the same, with equal names and
/// attributes. On ranks outside of the mesh they do nothing, and return nothing. Errors are errors
/// on every rank, with the path, the name in the file, and HDF5's own messages.
///
/// A created file replaces an existing one of its name in `close()`, at once: whenever the program
/// ends, it is the old or the new file. If it is not closed, because the last handle ends before or
/// a call on it has failed, it is discarded, and the old file stays.
class File {
 public:
  /// @see create, open
  explicit File(std::shared_ptr<detail::Hdf5File> file) : file_(std::move(file)) {}

  /// Writes the global array. Groups in the name are created.
  ///
  /// bool is written as h5py does, complex numbers as compounds of r and i, float16 as HDF5's float
  /// of 16 bits, and bfloat16 as one of 8 bits of exponent, which h5py reads as float32; floats of
  /// 8 bits have 4 or 5 bits of exponent.
  ///
  /// @param x        any placements without Partial, on a mesh of the same ranks; of replicas, the
  ///                 first one writes
  /// @param options  chunks and their compression
  /// @collective     every rank of the mesh
  /// @cost           writes each element once. Blocks dealt along an axis are one hyperslab
  /// @throws Error   if there is an array of that name, chunks do not fit, or a rank cannot write
  template <class T, int Rank, class Mesh, class P>
  void write(const std::string& name, const DTensor<T, Rank, Mesh, P>& x,
             const WriteOptions& options = {}) {
    static_assert(!DTensor<T, Rank, Mesh, P>::layout.has_partial(),
                  "cleave: a file has no addends: redistribute the Partial axes before writing");
    if (!detail::has_open(file_.get(), x.mesh().state(), "hdf5::File::write")) return;
    const auto dense = detail::dense_on_host(x.to_local());
    detail::write_hdf5(*file_, name, {x.actual_layout(), x.mesh().state(), Shape(x.shape())},
                       dense.view(), options);
  }

  /// Reads an array of exactly this element type, in any byte order, and number of dimensions.
  ///
  ///     const auto x = f.read<double, 2>("fluid/density", mesh, Shard<1>{}, Replicate{});
  ///
  /// @param mesh     of the same ranks as the file's
  /// @collective     every rank of the mesh
  /// @cost           each rank reads its elements, also replicas
  /// @throws Error   if there is no such array, it has another type or number of dimensions, cut
  ///                 points do not fit, or a rank cannot read
  template <Element T, int Rank, class Mesh, PlacementType... P>
    requires is_device_mesh<Mesh>
  auto read(const std::string& name, const Mesh& mesh, Placements<P...> placements) const {
    Dataset found;
    return detail::read_dtensor<T, Rank>(
        file_.get(), "hdf5::File::read", mesh, placements,
        [&](const Layout& layout) {
          found = detail::find_hdf5(*file_, name, dtype_of<T>(), Rank, layout, mesh.state());
          return found.shape;
        },
        [&](const detail::PartOfArray& part, const View& dense) {
          detail::read_hdf5(*file_, name, part, dense, found.chunk.dims > 0);
        });
  }
  template <Element T, int Rank, class Mesh, PlacementType... P>
    requires(is_device_mesh<Mesh> && sizeof...(P) > 0)
  auto read(const std::string& name, const Mesh& mesh, P... p) const {
    return read<T, Rank>(name, mesh, Placements<P...>(p...));
  }

  /// The names of all arrays, with their groups: "fluid/density".
  /// @collective every rank of the mesh
  std::vector<std::string> names() const {
    return file_ == nullptr ? std::vector<std::string>() : detail::names_hdf5(*file_);
  }

  /// Type, shape and chunks of an array.
  /// @collective   every rank of the mesh
  /// @throws Error if there is no such array, or its elements are none of cleave's
  Dataset dataset(const std::string& name) const {
    return file_ == nullptr ? Dataset() : detail::dataset_hdf5(*file_, name);
  }

  /// Writes a number, a few of them, or a string, the same on all ranks, beside an array or a
  /// group.
  ///
  /// @param object   the name of an array or a group; "/" for the file
  /// @param value    an element, a `std::vector` of them (not bool), or a string
  /// @collective     every rank of the mesh
  /// @throws Error   if there is no such object, it has the attribute, the ranks' values differ, or
  ///                 there are too many: HDF5 keeps up to 64 KiB
  template <Element T>
  void write_attribute(const std::string& object, const std::string& name, T value) {
    if (file_ != nullptr)
      detail::write_hdf5_numbers(*file_, object, name, dtype_of<T>(), {}, &value);
  }
  template <Element T>
  void write_attribute(const std::string& object, const std::string& name,
                       const std::vector<T>& values) {
    static_assert(!std::is_same_v<T, bool>,
                  "cleave: std::vector<bool> has no array of bool: pass std::int8_t");
    if (file_ != nullptr)
      detail::write_hdf5_numbers(*file_, object, name, dtype_of<T>(),
                                 Shape::filled(1, index_t(values.size())), values.data());
  }
  void write_attribute(const std::string& object, const std::string& name,
                       const std::string& text) {
    if (file_ != nullptr) detail::write_hdf5_text(*file_, object, name, text);
  }

  /// The value of an attribute: `f.attribute<double>("/", "time")`.
  ///
  /// @tparam V       an element type, a `std::vector` of one, or `std::string`
  /// @collective     every rank of the mesh
  /// @throws Error   if there is no such attribute, or it has another type or more values
  template <class V>
  V attribute(const std::string& object, const std::string& name) const {
    if (file_ == nullptr) return V{};
    return detail::attribute_as<V>(
        "hdf5", [&] { return detail::read_hdf5_text(*file_, object, name); },
        [&](DType dtype, const auto& make) {
          detail::read_hdf5_numbers(*file_, object, name, dtype, make);
        });
  }

  /// Closes the file. One that was created is flushed to disk, and replaces that of its name.
  ///
  /// @collective   every rank of the mesh; further calls do nothing
  /// @throws Error if a call on a created file has failed before, which is discarded, or if a rank
  ///               cannot write
  void close() {
    if (file_ != nullptr) file_->close();
  }

 private:
  std::shared_ptr<detail::Hdf5File> file_;
};

/// A new file, which replaces one of that name when it is closed; until then it is `path`.partial.
///
/// @collective   every rank of the mesh
/// @throws Error on every rank, if one cannot create it, the paths differ, or the ranks are not MPI
///               processes
template <class Mesh>
  requires is_device_mesh<Mesh>
File create(const std::string& path, const Mesh& mesh) {
  return File(mesh.is_member() ? std::make_shared<detail::Hdf5File>(mesh.state(), path, true)
                               : nullptr);
}

/// A file for reading.
///
/// @collective   every rank of the mesh
/// @throws Error on every rank, if one cannot open it, or the ranks are not MPI processes
template <class Mesh>
  requires is_device_mesh<Mesh>
File open(const std::string& path, const Mesh& mesh) {
  return File(mesh.is_member() ? std::make_shared<detail::Hdf5File>(mesh.state(), path, false)
                               : nullptr);
}

#else

template <class Mesh>
void create(const std::string&, const Mesh&) {
  static_assert(sizeof(Mesh) == 0,
                "cleave: HDF5 was not found when this was built: install the Debian package "
                "libhdf5-openmpi-dev (Meson option hdf5)");
}
template <class Mesh>
void open(const std::string& path, const Mesh& mesh) {
  create(path, mesh);
}

#endif

}  // namespace cleave::inline v0::hdf5
