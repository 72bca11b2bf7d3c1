// Attributes in a NetCDF file: values beside a variable or a group, which every rank has.
#pragma once

#include <cleave/core/config.hpp>

#if CLEAVE_HAS_NETCDF

#include <cstddef>
#include <cstdint>
#include <string>

#include <netcdf.h>

#include <cleave/core/checksum.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/interop/mpi/netcdf_file.hpp>

namespace cleave::inline v0::detail {

struct NetcdfOwner {
  int group, variable;
};

/// The owner of attributes: a variable, a group, or the file ("/").
inline NetcdfOwner netcdf_owner(int file, const std::string& object) {
  const NetcdfPlace place = netcdf_place(file, object);
  NetcdfOwner owner{place.group, NC_GLOBAL};
  if (place.name.empty()) return owner;
  const int found = nc_inq_varid(place.group, place.name.c_str(), &owner.variable);
  if (found == NC_NOERR) return owner;
  owner.variable = NC_GLOBAL;
  if (nc_inq_grp_ncid(place.group, place.name.c_str(), &owner.group) != NC_NOERR)
    netcdf_check(found, "nc_inq_varid");
  return owner;
}

inline void write_netcdf_attribute(NetcdfFile& file, const std::string& object,
                                   const std::string& name, nc_type type, std::size_t count,
                                   std::size_t bytes, const void* data) {
  const auto call = file.called("netcdf::File::write_attribute", object + "@" + name);
  file.meet(call, {std::uint64_t(type), count,
                   checksum(std::string(static_cast<const char*>(data), bytes))});
  file.require_writable(call);
  file.attempt(call, [&] {
    const NetcdfOwner owner = netcdf_owner(file.id(), object);
    netcdf_check(nc_put_att(owner.group, owner.variable, name.c_str(), type, count, data),
                 "nc_put_att");
  });
}

inline void write_netcdf_text(NetcdfFile& file, const std::string& object, const std::string& name,
                              const std::string& text) {
  write_netcdf_attribute(file, object, name, NC_CHAR, text.size(), text.size(), text.data());
}

/// Calls f(who has it, its type, the number of its values).
template <class F>
void read_netcdf_attribute(NetcdfFile& file, const std::string& object, const std::string& name,
                           const F& f) {
  const auto call = file.called("netcdf::File::attribute", object + "@" + name);
  file.meet(call, {});
  file.require_open(call);
  file.attempt(call, [&] {
    const NetcdfOwner owner = netcdf_owner(file.id(), object);
    nc_type type = NC_NAT;
    std::size_t count = 0;
    netcdf_check(nc_inq_att(owner.group, owner.variable, name.c_str(), &type, &count),
                 "nc_inq_att");
    f(owner, type, count);
  });
}

/// @param make  returns the memory for values of a shape
template <class Make>
void read_netcdf_numbers(NetcdfFile& file, const std::string& object, const std::string& name,
                         DType dtype, const Make& make) {
  read_netcdf_attribute(
      file, object, name, [&](const NetcdfOwner& owner, nc_type type, std::size_t count) {
        const DType found = dtype_of_netcdf(type);
        if (found != dtype)
          throw Error("NetCDF",
                      std::string("it is of type ") + name_of(found) + ", not " + name_of(dtype));
        void* const data = make(Shape::filled(1, index_t(count)));
        if (count > 0)
          netcdf_check(nc_get_att(owner.group, owner.variable, name.c_str(), data), "nc_get_att");
      });
}

/// Text, as characters or as one string.
inline std::string read_netcdf_text(NetcdfFile& file, const std::string& object,
                                    const std::string& name) {
  std::string text;
  read_netcdf_attribute(
      file, object, name, [&](const NetcdfOwner& owner, nc_type type, std::size_t count) {
        if (type == NC_STRING && count == 1) {
          char* data = nullptr;
          netcdf_check(nc_get_att_string(owner.group, owner.variable, name.c_str(), &data),
                       "nc_get_att_string");
          if (data != nullptr) text = data;
          netcdf_check(nc_free_string(1, &data), "nc_free_string");
          return;
        }
        if (type != NC_CHAR) throw Error("NetCDF", "it is no string");
        text.resize(count);
        if (count > 0)
          netcdf_check(nc_get_att_text(owner.group, owner.variable, name.c_str(), text.data()),
                       "nc_get_att_text");
      });
  return text;
}

}  // namespace cleave::inline v0::detail

#endif
