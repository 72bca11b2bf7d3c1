// NetCDF's files by MPI-IO, its errors and element types.
#pragma once

#include <cleave/core/config.hpp>

#if CLEAVE_HAS_NETCDF

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include <netcdf.h>
#include <netcdf_par.h>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/interop/mpi/collective_file.hpp>

namespace cleave::inline v0::detail {

/// @throws Error with NetCDF's message if a call has failed
inline void netcdf_check(int status, const char* call) {
  if (status != NC_NOERR) throw Error("NetCDF", std::string(call) + ": " + nc_strerror(status));
}

struct NetcdfLibrary {
  using Handle = int;
  struct Scope {};
  static constexpr int none = -1;
  static constexpr const char *create_name = "netcdf::create", *open_name = "netcdf::open",
                              *close_name = "netcdf::File::close", *file_name = "netcdf::File";

  static int create(const std::string& path, MPI_Comm comm) {
    int file = none;
    netcdf_check(nc_create_par(path.c_str(), NC_NETCDF4 | NC_CLOBBER, comm, MPI_INFO_NULL, &file),
                 "nc_create_par");
    return file;
  }
  static int open(const std::string& path, MPI_Comm comm) {
    int file = none;
    netcdf_check(nc_open_par(path.c_str(), NC_NOWRITE, comm, MPI_INFO_NULL, &file), "nc_open_par");
    return file;
  }
  static void close(int file) { netcdf_check(nc_close(file), "nc_close"); }
};

using NetcdfFile = CollectiveFile<NetcdfLibrary>;

/// The element types that NetCDF has.
inline constexpr std::array<std::pair<DType, nc_type>, 10> netcdf_types{{
    {DType::int8, NC_BYTE},
    {DType::uint8, NC_UBYTE},
    {DType::int16, NC_SHORT},
    {DType::uint16, NC_USHORT},
    {DType::int32, NC_INT},
    {DType::uint32, NC_UINT},
    {DType::int64, NC_INT64},
    {DType::uint64, NC_UINT64},
    {DType::float32, NC_FLOAT},
    {DType::float64, NC_DOUBLE},
}};

/// @pre it is one of them
constexpr nc_type netcdf_type(DType dtype) {
  for (const auto& [ours, theirs] : netcdf_types)
    if (ours == dtype) return theirs;
  return NC_NAT;
}

/// @throws Error if it is none of cleave's
inline DType dtype_of_netcdf(nc_type type) {
  for (const auto& [ours, theirs] : netcdf_types)
    if (theirs == type) return ours;
  throw Error("NetCDF", type == NC_CHAR || type == NC_STRING
                            ? "its elements are text"
                            : "its elements are of a type that tensors lack");
}

/// A group of a file, or of a group in it, and a name in this group.
struct NetcdfPlace {
  int group;
  std::string name;
};

/// Where "group/of group/name" is. @throws Error if there is no such group, and it is not to be
/// made
inline NetcdfPlace netcdf_place(int file, const std::string& path, bool makes_groups = false) {
  NetcdfPlace place{file, path};
  for (std::size_t slash; (slash = place.name.find('/')) != place.name.npos;) {
    const std::string group = place.name.substr(0, slash);
    place.name.erase(0, slash + 1);
    if (group.empty()) continue;
    const int parent = place.group;
    const int found = nc_inq_grp_ncid(parent, group.c_str(), &place.group);
    if (found == NC_ENOGRP && makes_groups)
      netcdf_check(nc_def_grp(parent, group.c_str(), &place.group), "nc_def_grp");
    else netcdf_check(found, "nc_inq_grp_ncid");
  }
  return place;
}

}  // namespace cleave::inline v0::detail

#endif
