// DTensors and attributes in NetCDF-4 files: one file, which all ranks write and read, each its own
// elements, under any placements.
//
//     auto f = netcdf::create("ocean.nc", mesh);
//     f.write("depth", depth, {"y", "x"});                       // defines the dimensions
//     f.write_record("temperature", step, t, {"time", "y", "x"});   // time is unlimited
//     f.write_attribute("temperature", "units", "K");
//     f.close();
//
//     const auto y = netcdf::open("ocean.nc", mesh).read<double, 2>("depth", mesh, Shard<1>{});
//
// For ranks that are MPI processes; requires CLEAVE_HAS_NETCDF. These files are HDF5 files, too.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/placement/placement.hpp>
#if CLEAVE_HAS_NETCDF
#include <cleave/interop/mpi/file_arrays.hpp>
#include <cleave/interop/mpi/netcdf_attributes.hpp>
#include <cleave/interop/mpi/netcdf_file.hpp>
#include <cleave/interop/mpi/netcdf_variables.hpp>
#endif

namespace cleave::inline v0::detail {

template <class T>
constexpr void require_netcdf_type() {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>,
                "cleave: NetCDF has integers, float and double: write complex numbers as two "
                "variables, bool as std::int8_t, half and bfloat16 as float");
}

}  // namespace cleave::inline v0::detail

namespace cleave::inline v0::netcdf {

#if CLEAVE_HAS_NETCDF

/// A file that all ranks of a mesh have open. A handle: copies share the file.
///
/// All functions are collective: every rank of the mesh calls the same, with equal names and
/// attributes. On ranks outside of the mesh they do nothing, and return nothing. Errors are errors
/// on every rank, with the path, the name in the file, and NetCDF's own message.
///
/// A created file replaces an existing one of its name in `close()`, at once: whenever the program
/// ends, it is the old or the new file. If it is not closed, because the last handle ends before or
/// a call on it has failed, it is discarded, and the old file stays.
class File {
 public:
  /// @see create, open
  explicit File(std::shared_ptr<detail::NetcdfFile> file) : file_(std::move(file)) {}

  /// Writes the global array as a variable. Groups in the name are created.
  ///
  /// @param x        integers, float or double; any placements without Partial, on a mesh of the
  ///                 same ranks; of replicas, the first one writes. At least one element
  /// @param dims     names of its dimensions, which other variables of these lengths may share
  /// @param options  chunks and their compression
  /// @collective     every rank of the mesh
  /// @cost           writes each element once. Block-cyclic parts are first redistributed to rows
  /// @throws Error   if there is a variable of that name, a dimension has another length, chunks do
  ///                 not fit, or a rank cannot write
  template <class T, int Rank, class Mesh, class P>
  void write(const std::string& name, const DTensor<T, Rank, Mesh, P>& x,
             const std::array<std::string, std::size_t(Rank)>& dims,
             const WriteOptions& options = {}) {
    write_part("netcdf::File::write", name, x, {dims.begin(), dims.end()}, detail::whole_variable,
               options);
  }

  /// Writes the global array as one record of a variable, whose first dimension is unlimited. The
  /// first record of a name defines the variable; records that are not written have fill values.
  ///
  /// @param index    of the record, from 0
  /// @param dims     first the name of the unlimited dimension
  /// @param options  chunks of one record
  /// @see write
  template <class T, int Rank, class Mesh, class P>
  void write_record(const std::string& name, index_t index, const DTensor<T, Rank, Mesh, P>& x,
                    const std::array<std::string, std::size_t(Rank) + 1>& dims,
                    const WriteOptions& options = {}) {
    write_part("netcdf::File::write_record", name, x, {dims.begin(), dims.end()}, index, options);
  }

  /// Reads a variable of exactly this element type and number of dimensions.
  ///
  ///     const auto x = f.read<double, 2>("depth", mesh, Shard<1>{}, Replicate{});
  ///
  /// @param mesh     of the same ranks as the file's
  /// @collective     every rank of the mesh
  /// @cost           each rank reads its elements, also replicas. For block-cyclic placements it
  ///                 reads rows, which are redistributed
  /// @throws Error   if there is no such variable, it has another type or number of dimensions, cut
  ///                 points do not fit, or a rank cannot read
  template <Element T, int Rank, class Mesh, PlacementType... P>
    requires is_device_mesh<Mesh>
  auto read(const std::string& name, const Mesh& mesh, Placements<P...> placements) const {
    return read_part<T, Rank>("netcdf::File::read", name, mesh, placements, detail::whole_variable);
  }
  template <Element T, int Rank, class Mesh, PlacementType... P>
    requires(is_device_mesh<Mesh> && sizeof...(P) > 0)
  auto read(const std::string& name, const Mesh& mesh, P... p) const {
    return read<T, Rank>(name, mesh, Placements<P...>(p...));
  }

  /// Reads one record of a variable, an array of `Rank` dimensions: `variable(name).shape[0]` is
  /// the number of records. The first dimension need not be unlimited.
  /// @see read
  template <Element T, int Rank, class Mesh, PlacementType... P>
    requires is_device_mesh<Mesh>
  auto read_record(const std::string& name, index_t index, const Mesh& mesh,
                   Placements<P...> placements) const {
    return read_part<T, Rank>("netcdf::File::read_record", name, mesh, placements, index);
  }
  template <Element T, int Rank, class Mesh, PlacementType... P>
    requires(is_device_mesh<Mesh> && sizeof...(P) > 0)
  auto read_record(const std::string& name, index_t index, const Mesh& mesh, P... p) const {
    return read_record<T, Rank>(name, index, mesh, Placements<P...>(p...));
  }

  /// The names of all variables, with their groups: "surface/depth".
  /// @collective every rank of the mesh
  std::vector<std::string> names() const {
    return file_ == nullptr ? std::vector<std::string>() : detail::names_netcdf(*file_);
  }

  /// Type, shape and dimensions of a variable.
  /// @collective   every rank of the mesh
  /// @throws Error if there is no such variable, or its elements are none of cleave's
  Variable variable(const std::string& name) const {
    return file_ == nullptr ? Variable() : detail::variable_netcdf(*file_, name);
  }

  /// Writes a number, a few of them, or a string, the same on all ranks, beside a variable or a
  /// group. Replaces an attribute of that name.
  ///
  /// @param object   the name of a variable or a group; "/" for the file
  /// @param value    an element of a type that variables have, a `std::vector` of them, or a string
  /// @collective     every rank of the mesh
  /// @throws Error   if there is no such object, or the ranks' values differ
  template <Element T>
  void write_attribute(const std::string& object, const std::string& name, T value) {
    detail::require_netcdf_type<T>();
    if (file_ != nullptr)
      detail::write_netcdf_attribute(*file_, object, name, detail::netcdf_type(dtype_of<T>()), 1,
                                     sizeof value, &value);
  }
  template <Element T>
  void write_attribute(const std::string& object, const std::string& name,
                       const std::vector<T>& values) {
    detail::require_netcdf_type<T>();
    if (file_ != nullptr)
      detail::write_netcdf_attribute(*file_, object, name, detail::netcdf_type(dtype_of<T>()),
                                     values.size(), values.size() * sizeof(T), values.data());
  }
  void write_attribute(const std::string& object, const std::string& name,
                       const std::string& text) {
    if (file_ != nullptr) detail::write_netcdf_text(*file_, object, name, text);
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
        "netcdf", [&] { return detail::read_netcdf_text(*file_, object, name); },
        [&](DType dtype, const auto& make) {
          detail::read_netcdf_numbers(*file_, object, name, dtype, make);
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
  template <class T, int Rank, class Mesh, class P>
  void write_part(const char* operation, const std::string& name,
                  const DTensor<T, Rank, Mesh, P>& x, const std::vector<std::string>& dims,
                  index_t record, const WriteOptions& options) {
    using X = DTensor<T, Rank, Mesh, P>;
    detail::require_netcdf_type<T>();
    static_assert(!X::layout.has_partial(),
                  "cleave: a file has no addends: redistribute the Partial axes before writing");
    if (!detail::has_open(file_.get(), x.mesh().state(), operation)) return;
    if constexpr (!X::layout.is_box()) {
      const auto rows = x.redistribute(detail::rows_t<Mesh::axis_count>{});
      write_part(operation, name, rows, dims, record, options);
    } else {
      const auto dense = detail::dense_on_host(x.to_local());
      detail::write_netcdf(*file_, operation, name,
                           {x.actual_layout(), x.mesh().state(), Shape(x.shape())}, dense.view(),
                           dims, record, options);
    }
  }

  template <class T, int Rank, class Mesh, class... P>
  auto read_part(const char* operation, const std::string& name, const Mesh& mesh,
                 const Placements<P...>& placements, index_t record) const {
    using Rows = detail::rows_t<Mesh::axis_count>;
    detail::require_netcdf_type<T>();
    if constexpr (
        !layout_of<decltype(detail::target_placements<Rank, Mesh, P...>()), Rank>.is_box())
      return read_part<T, Rank>(operation, name, mesh, Rows{}, record).redistribute(placements);
    else
      return detail::read_dtensor<T, Rank>(
          file_.get(), operation, mesh, placements,
          [&](const Layout& layout) {
            return detail::find_netcdf(*file_, operation, name, dtype_of<T>(), Rank, record,
                                       {layout, mesh.state(), {}});
          },
          [&](const detail::PartOfArray& part, const View& dense) {
            detail::read_netcdf(*file_, operation, name, part, dense, record);
          });
  }

  std::shared_ptr<detail::NetcdfFile> file_;
};

/// A new file, which replaces one of that name when it is closed; until then it is `path`.partial.
///
/// @collective   every rank of the mesh
/// @throws Error on every rank, if one cannot create it, the paths differ, or the ranks are not MPI
///               processes
template <class Mesh>
  requires is_device_mesh<Mesh>
File create(const std::string& path, const Mesh& mesh) {
  return File(mesh.is_member() ? std::make_shared<detail::NetcdfFile>(mesh.state(), path, true)
                               : nullptr);
}

/// A file for reading, of format NetCDF-4.
///
/// @collective   every rank of the mesh
/// @throws Error on every rank, if one cannot open it, or the ranks are not MPI processes
template <class Mesh>
  requires is_device_mesh<Mesh>
File open(const std::string& path, const Mesh& mesh) {
  return File(mesh.is_member() ? std::make_shared<detail::NetcdfFile>(mesh.state(), path, false)
                               : nullptr);
}

#else

template <class Mesh>
void create(const std::string&, const Mesh&) {
  static_assert(sizeof(Mesh) == 0,
                "cleave: NetCDF with MPI was not found when this was built: install the Debian "
                "package libnetcdf-mpi-dev (Meson option netcdf)");
}
template <class Mesh>
void open(const std::string& path, const Mesh& mesh) {
  create(path, mesh);
}

#endif

}  // namespace cleave::inline v0::netcdf
