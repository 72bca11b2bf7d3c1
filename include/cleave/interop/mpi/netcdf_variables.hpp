// Variables in a NetCDF file, each rank its own elements, by collective transfers.
#pragma once

#include <cleave/core/config.hpp>

#if CLEAVE_HAS_NETCDF

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <netcdf.h>

#include <cleave/core/checksum.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/interop/mpi/file_arrays.hpp>
#include <cleave/interop/mpi/netcdf_file.hpp>
#include <cleave/interop/shared_array_file.hpp>
#include <cleave/placement/owned_boxes.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::netcdf {

using WriteOptions = cleave::detail::WriteOptions;

/// What a file says of a variable.
struct Variable {
  DType dtype = DType::float64;
  Shape shape{};
  std::vector<std::string> dims{};  ///< names, one per dimension
  bool has_records = false;         ///< the first dimension is unlimited
};

}  // namespace cleave::inline v0::netcdf

namespace cleave::inline v0::detail {

/// No record: the whole variable.
inline constexpr index_t whole_variable = std::numeric_limits<index_t>::min();

/// The dimension of a name, which is defined if it is new.
/// @param extent  NC_UNLIMITED for that of records
inline int netcdf_dimension(int group, const std::string& name, std::size_t extent) {
  int dim = -1;
  const int found = nc_inq_dimid(group, name.c_str(), &dim);
  if (found == NC_EBADDIM) {
    netcdf_check(nc_def_dim(group, name.c_str(), extent, &dim), "nc_def_dim");
    return dim;
  }
  netcdf_check(found, "nc_inq_dimid");
  std::size_t length = 0;
  netcdf_check(nc_inq_dimlen(group, dim, &length), "nc_inq_dimlen");
  if (extent != NC_UNLIMITED && length != extent)
    throw Error("NetCDF", "its dimension '" + name + "' has length " + std::to_string(length) +
                              ", not " + std::to_string(extent));
  return dim;
}

inline netcdf::Variable describe_netcdf(int group, int variable) {
  nc_type type = NC_NAT;
  int dims = 0;
  std::array<int, NC_MAX_VAR_DIMS> dim{};
  netcdf_check(nc_inq_var(group, variable, nullptr, &type, &dims, dim.data(), nullptr),
               "nc_inq_var");
  netcdf::Variable found{dtype_of_netcdf(type), {}, {}, false};
  if (dims > max_dims)
    throw Error("NetCDF", "it has " + std::to_string(dims) + " dimensions, more than tensors have");
  found.shape = Shape::filled(dims, 0);
  for (int d = 0; d < dims; ++d) {
    std::array<char, NC_MAX_NAME + 1> name{};
    std::size_t length = 0;
    netcdf_check(nc_inq_dim(group, dim[std::size_t(d)], name.data(), &length), "nc_inq_dim");
    found.shape[d] = index_t(length);
    found.dims.emplace_back(name.data());
  }
  if (dims == 0) return found;
  for (int at = group; !found.has_records;) {  // dimensions may be those of an outer group
    int count = 0;
    std::array<int, NC_MAX_DIMS> unlimited{};
    netcdf_check(nc_inq_unlimdims(at, &count, unlimited.data()), "nc_inq_unlimdims");
    found.has_records = std::find(unlimited.begin(), unlimited.begin() + count, dim[0]) !=
                        unlimited.begin() + count;
    if (nc_inq_grp_parent(at, &at) != NC_NOERR) break;
  }
  return found;
}

/// @throws Error if there is none of the name
inline int find_netcdf_variable(const NetcdfPlace& place) {
  int variable = -1;
  netcdf_check(nc_inq_varid(place.group, place.name.c_str(), &variable), "nc_inq_varid");
  return variable;
}

/// The variable for arrays of this type and shape, which is defined if it is new.
/// @param dims  names; with records, also that of the unlimited dimension before those of the shape
inline int make_netcdf_variable(const NetcdfPlace& place, DType dtype, const Shape& shape,
                                const std::vector<std::string>& dims, bool records,
                                const netcdf::WriteOptions& options) {
  int variable = -1;
  if (records && nc_inq_varid(place.group, place.name.c_str(), &variable) == NC_NOERR) {
    const netcdf::Variable found = describe_netcdf(place.group, variable);
    const bool fits =
        found.has_records && found.dtype == dtype && found.dims == dims &&
        std::equal(shape.begin(), shape.end(), found.shape.begin() + 1, found.shape.end());
    if (!fits) throw Error("NetCDF", "its records have another type, shape or other dimensions");
    return variable;
  }
  std::array<int, std::size_t(max_dims) + 1> dim{};
  const int first = records ? 1 : 0;
  if (records) dim[0] = netcdf_dimension(place.group, dims[0], NC_UNLIMITED);
  for (int d = 0; d < shape.dims; ++d) {
    if (shape[d] == 0)
      throw Error("NetCDF",
                  "its array has no elements: dimensions of NetCDF have at least length "
                  "1");
    dim[std::size_t(d + first)] =
        netcdf_dimension(place.group, dims[std::size_t(d + first)], std::size_t(shape[d]));
  }
  netcdf_check(nc_def_var(place.group, place.name.c_str(), netcdf_type(dtype), shape.dims + first,
                          dim.data(), &variable),
               "nc_def_var");
  if (!records)  // every element will be written
    netcdf_check(nc_def_var_fill(place.group, variable, NC_NOFILL, nullptr), "nc_def_var_fill");
  if (!options.chunk.empty()) {
    std::vector<std::size_t> chunk(options.chunk.begin(), options.chunk.end());
    chunk.insert(chunk.begin(), std::size_t(first), 1);
    netcdf_check(nc_def_var_chunking(place.group, variable, NC_CHUNKED, chunk.data()),
                 "nc_def_var_chunking");
    if (options.deflate > 0)
      netcdf_check(nc_def_var_deflate(place.group, variable, 0, 1, options.deflate),
                   "nc_def_var_deflate");
  }
  return variable;
}

/// Where some rows of a rank's part are in a variable.
struct NetcdfBox {
  std::array<std::size_t, std::size_t(max_dims) + 1> start{}, count{};

  /// @pre part.layout.is_box()
  NetcdfBox(const PartOfArray& part, const IndexRange& rows, index_t record) {
    const std::size_t first = record == whole_variable ? 0 : 1;
    if (first == 1) start[0] = std::size_t(record), count[0] = rows.size() > 0 ? 1 : 0;
    each_owned_box(part.layout, part.shape, part.mesh.extents(), part.mesh.coordinate(),
                   [&](const Box& box, const Box&) {
                     for (int d = 0; d < part.shape.dims; ++d) {
                       const std::size_t at = std::size_t(d) + first;
                       start[at] = std::size_t(box.begin[d]);
                       count[at] = std::size_t(box.end[d] - box.begin[d]);
                     }
                     if (part.shape.dims == 0) return;
                     start[first] += std::size_t(rows.begin);
                     count[first] = std::size_t(rows.size());
                   });
  }
};

/// NC_CONTIGUOUS or another.
inline int netcdf_storage(int group, int variable) {
  int storage = NC_CHUNKED;
  netcdf_check(nc_inq_var_chunking(group, variable, &storage, nullptr), "nc_inq_var_chunking");
  return storage;
}

/// Each rank transfers long runs of an unchunked variable on its own, all others together.
inline void netcdf_access(int group, int variable, const PartOfArray& part, DType dtype) {
  const bool alone =
      netcdf_storage(group, variable) == NC_CONTIGUOUS && is_transferred_alone(part, dtype);
  netcdf_check(nc_var_par_access(group, variable, alone ? NC_INDEPENDENT : NC_COLLECTIVE),
               "nc_var_par_access");
}

/// @param dims    @see make_netcdf_variable
/// @param record  index along the unlimited dimension, or whole_variable
/// @pre part.layout.is_box()
inline void write_netcdf(NetcdfFile& file, const char* operation, const std::string& name,
                         const PartOfArray& part, const ConstView& dense,
                         const std::vector<std::string>& dims, index_t record,
                         const netcdf::WriteOptions& options) {
  const auto call = file.called(operation, name, to_string(part.shape), to_string(part.layout));
  std::string names;
  for (const std::string& dim : dims) names += dim + '/';
  file.meet(call, {std::uint64_t(dense.dtype), checksum(part.shape), checksum(names),
                   std::uint64_t(record), checksum(options.chunk), std::uint64_t(options.deflate)});
  file.require_writable(call);
  file.require_same_ranks(call, part.mesh);
  require_chunks(file, call, part.shape, options);
  if (record < 0 && record != whole_variable)
    file.refuse(call, "the index of a record must be 0 or more, not " + std::to_string(record));
  NetcdfPlace place{};
  int variable = -1;
  file.attempt(call, [&] {
    place = netcdf_place(file.id(), name, true);
    variable = make_netcdf_variable(place, dense.dtype, part.shape, dims, record != whole_variable,
                                    options);
    netcdf_access(place.group, variable, part, dense.dtype);
  });
  const auto* data = static_cast<const std::byte*>(dense.data);
  transfer_part(file, call, part, dense.dtype, is_first_replica(part), options.deflate > 0,
                [&](const IndexRange& rows, index_t first, index_t) {
                  const NetcdfBox box(part, rows, record);
                  netcdf_check(
                      nc_put_vara(place.group, variable, box.start.data(), box.count.data(),
                                  data + std::size_t(first) * size_of(dense.dtype)),
                      "nc_put_vara");
                });
}

inline netcdf::Variable variable_netcdf(NetcdfFile& file, const std::string& name) {
  const auto call = file.called("netcdf::File::variable", name);
  file.meet(call, {});
  file.require_open(call);
  netcdf::Variable found;
  file.attempt(call, [&] {
    const NetcdfPlace place = netcdf_place(file.id(), name);
    found = describe_netcdf(place.group, find_netcdf_variable(place));
  });
  return found;
}

/// The shape of a variable, or of its records, that must have this type and number of dimensions.
inline Shape find_netcdf(NetcdfFile& file, const char* operation, const std::string& name,
                         DType dtype, int dims, index_t record, const PartOfArray& part) {
  const auto call = file.called(operation, name, {}, to_string(part.layout));
  file.meet(call, {std::uint64_t(dtype), std::uint64_t(dims), std::uint64_t(record)});
  file.require_open(call);
  file.require_same_ranks(call, part.mesh);
  Shape shape;
  file.attempt(call, [&] {
    const NetcdfPlace place = netcdf_place(file.id(), name);
    const netcdf::Variable found = describe_netcdf(place.group, find_netcdf_variable(place));
    if (found.dtype != dtype)
      throw Error("NetCDF", std::string("it has elements of type ") + name_of(found.dtype) +
                                ", not " + name_of(dtype));
    const int first = record == whole_variable ? 0 : 1;
    if (found.shape.dims != dims + first)
      throw Error("NetCDF", "it has " + std::to_string(found.shape.dims) + " dimensions " +
                                to_string(found.shape) + ", not " + std::to_string(dims + first));
    if (first == 1 && (record < 0 || record >= found.shape[0]))
      throw Error("NetCDF", "it has no record " + std::to_string(record) + ", but " +
                                std::to_string(found.shape[0]) + " of them");
    shape = Shape::filled(dims, 0);
    for (int d = 0; d < dims; ++d) shape[d] = found.shape[d + first];
  });
  return shape;
}

/// @pre find_netcdf has returned the shape, and part.layout.is_box()
inline void read_netcdf(NetcdfFile& file, const char* operation, const std::string& name,
                        const PartOfArray& part, const View& dense, index_t record) {
  const auto call = file.called(operation, name, to_string(part.shape), to_string(part.layout));
  NetcdfPlace place{};
  int variable = -1, storage = NC_CONTIGUOUS;
  file.attempt(call, [&] {
    place = netcdf_place(file.id(), name);
    variable = find_netcdf_variable(place);
    netcdf_access(place.group, variable, part, dense.dtype);
    storage = netcdf_storage(place.group, variable);
  });
  auto* data = static_cast<std::byte*>(dense.data);
  transfer_part(file, call, part, dense.dtype, true, storage == NC_CHUNKED,
                [&](const IndexRange& rows, index_t first, index_t) {
                  const NetcdfBox box(part, rows, record);
                  netcdf_check(
                      nc_get_vara(place.group, variable, box.start.data(), box.count.data(),
                                  data + std::size_t(first) * size_of(dense.dtype)),
                      "nc_get_vara");
                });
}

/// The names of all variables, those of groups after those of the group that has them.
inline std::vector<std::string> names_netcdf(NetcdfFile& file) {
  const auto call = file.called("netcdf::File::names", {});
  file.meet(call, {});
  file.require_open(call);
  std::vector<std::string> found;
  const auto visit = [&](const auto& self, int group, const std::string& prefix) -> void {
    std::array<char, NC_MAX_NAME + 1> name{};
    int variables = 0, groups = 0;
    netcdf_check(nc_inq_nvars(group, &variables), "nc_inq_nvars");
    for (int variable = 0; variable < variables; ++variable) {
      netcdf_check(nc_inq_varname(group, variable, name.data()), "nc_inq_varname");
      found.push_back(prefix + name.data());
    }
    netcdf_check(nc_inq_grps(group, &groups, nullptr), "nc_inq_grps");
    std::vector<int> inner(std::size_t(groups), 0);
    netcdf_check(nc_inq_grps(group, nullptr, inner.data()), "nc_inq_grps");
    for (const int one : inner) {
      netcdf_check(nc_inq_grpname(one, name.data()), "nc_inq_grpname");
      self(self, one, prefix + name.data() + '/');
    }
  };
  file.attempt(call, [&] { visit(visit, file.id(), ""); });
  return found;
}

}  // namespace cleave::inline v0::detail

#endif
