// Attributes in an HDF5 file: values beside an array or a group, which every rank has.
#pragma once

#include <cleave/core/config.hpp>

#if CLEAVE_HAS_HDF5

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <hdf5.h>

#include <cleave/core/checksum.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/interop/mpi/hdf5_file.hpp>
#include <cleave/interop/mpi/hdf5_objects.hpp>

namespace cleave::inline v0::detail {

/// @param type_of  makes the type, of the file and of `data`
/// @param sum      differs for other values
template <class Type>
void write_hdf5_attribute(Hdf5File& file, const std::string& object, const std::string& name,
                          const Type& type_of, const Shape& shape, const void* data,
                          std::uint64_t sum) {
  const auto call =
      file.called("hdf5::File::write_attribute", object + "@" + name, to_string(shape));
  file.meet(call, {checksum(shape), sum});
  file.require_writable(call);
  file.attempt(call, [&] {
    const Hdf5Object owner(H5Oopen(file.id(), object.c_str(), H5P_DEFAULT), H5Oclose, "H5Oopen"),
        type = type_of(), space = hdf5_space(shape);
    const Hdf5Object attribute(
        H5Acreate2(owner, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
        "H5Acreate");
    if (shape.product() > 0) hdf5_check(H5Awrite(attribute, type, data), "H5Awrite");
  });
}

inline void write_hdf5_numbers(Hdf5File& file, const std::string& object, const std::string& name,
                               DType dtype, const Shape& shape, const void* data) {
  Checksum sum;
  sum.add(std::uint64_t(dtype));
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < std::size_t(shape.product()) * size_of(dtype); ++i) sum.add(bytes[i]);
  write_hdf5_attribute(file, object, name, [&] { return hdf5_type(dtype); }, shape, data, sum.sum);
}

/// A string of any length in UTF-8, as h5py writes it.
inline void write_hdf5_text(Hdf5File& file, const std::string& object, const std::string& name,
                            const std::string& text) {
  const auto type_of = [] {
    Hdf5Object type(H5Tcopy(H5T_C_S1), H5Tclose, "H5Tcopy");
    hdf5_check(H5Tset_size(type, H5T_VARIABLE), "H5Tset_size");
    hdf5_check(H5Tset_cset(type, H5T_CSET_UTF8), "H5Tset_cset");
    return type;
  };
  const char* data = text.c_str();
  write_hdf5_attribute(file, object, name, type_of, {}, &data, checksum(text));
}

/// Calls f(attribute, its type, its extents).
template <class F>
void read_hdf5_attribute(Hdf5File& file, const std::string& object, const std::string& name,
                         const F& f) {
  const auto call = file.called("hdf5::File::attribute", object + "@" + name);
  file.meet(call, {});
  file.require_open(call);
  file.attempt(call, [&] {
    const Hdf5Object attribute(
        H5Aopen_by_name(file.id(), object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose, "H5Aopen_by_name"),
        type(H5Aget_type(attribute), H5Tclose, "H5Aget_type"),
        space(H5Aget_space(attribute), H5Sclose, "H5Aget_space");
    f(hid_t(attribute), hid_t(type), hdf5_extents(space));
  });
}

/// @param make  returns the memory for values of a shape
template <class Make>
void read_hdf5_numbers(Hdf5File& file, const std::string& object, const std::string& name,
                       DType dtype, const Make& make) {
  read_hdf5_attribute(file, object, name, [&](hid_t attribute, hid_t type, const Shape& shape) {
    const DType found = dtype_of_hdf5(type);
    if (found != dtype)
      throw Error("HDF5",
                  std::string("it is of type ") + name_of(found) + ", not " + name_of(dtype));
    void* const data = make(shape);
    if (shape.product() > 0) hdf5_check(H5Aread(attribute, hdf5_type(dtype), data), "H5Aread");
  });
}

inline std::string read_hdf5_text(Hdf5File& file, const std::string& object,
                                  const std::string& name) {
  std::string text;
  read_hdf5_attribute(file, object, name, [&](hid_t attribute, hid_t type, const Shape& shape) {
    if (H5Tget_class(type) != H5T_STRING || shape.product() != 1)
      throw Error("HDF5", "it is no string");
    if (hdf5_check(H5Tis_variable_str(type), "H5Tis_variable_str") > 0) {
      char* data = nullptr;
      hdf5_check(H5Aread(attribute, type, static_cast<void*>(&data)), "H5Aread");
      if (data != nullptr) text = data;
      H5free_memory(data);
      return;
    }
    text.resize(H5Tget_size(type));
    hdf5_check(H5Aread(attribute, type, text.data()), "H5Aread");
    text.resize(H5Tget_strpad(type) == H5T_STR_SPACEPAD ? text.find_last_not_of(' ') + 1
                                                        : std::min(text.find('\0'), text.size()));
  });
  return text;
}

}  // namespace cleave::inline v0::detail

#endif
