// HDF5's objects, errors and element types as cleave has them.
#pragma once

#include <cleave/core/config.hpp>

#if CLEAVE_HAS_HDF5

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>

#include <hdf5.h>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>

static_assert(std::endian::native == std::endian::little,
              "cleave: HDF5 files are read and written on little-endian machines only");

namespace cleave::inline v0::detail {

/// Keeps HDF5 from printing its errors: they are part of ours.
class Hdf5Silence {
 public:
  Hdf5Silence() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  Hdf5Silence(const Hdf5Silence&) = delete;
  Hdf5Silence& operator=(const Hdf5Silence&) = delete;
  ~Hdf5Silence() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

/// The result of a call of HDF5.
/// @throws Error with HDF5's own messages, from the call inwards, if it is negative
template <class Result>
Result hdf5_check(Result result, const char* call) {
  if (result >= 0) return result;
  std::string text = call;
  const auto add = [](unsigned, const H5E_error2_t* error, void* to) -> herr_t {
    std::string& all = *static_cast<std::string*>(to);
    const std::string part = error->desc == nullptr ? "" : error->desc;
    if (!part.empty() && all.find(part) == all.npos) all += ": " + part;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, add, &text);
  throw Error("HDF5", text);
}

/// An object of HDF5, which is closed at the end.
class Hdf5Object {
 public:
  /// @throws Error if `call` did not return an object
  Hdf5Object(hid_t id, herr_t (*close)(hid_t), const char* call)
      : id_(hdf5_check(id, call)), close_(close) {}
  Hdf5Object(Hdf5Object&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Hdf5Object& operator=(Hdf5Object&&) = delete;
  ~Hdf5Object() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const noexcept { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

inline Hdf5Object hdf5_list(hid_t kind) { return {H5Pcreate(kind), H5Pclose, "H5Pcreate"}; }

/// The type of elements in memory and in files. Those that HDF5 lacks are as h5py has them: complex
/// numbers have the members r and i, bool is an enumeration of FALSE and TRUE, and floats of 8
/// and 16 bits are floats of HDF5 with fewer bits.
inline Hdf5Object hdf5_type(DType dtype) {
  const auto copy = [](hid_t type) { return Hdf5Object(H5Tcopy(type), H5Tclose, "H5Tcopy"); };
  const auto short_float = [&](std::size_t bits, std::size_t exponent) {
    Hdf5Object type = copy(H5T_IEEE_F32LE);
    const std::size_t mantissa = bits - 1 - exponent;
    H5Tset_fields(type, bits - 1, mantissa, exponent, 0, mantissa);
    H5Tset_size(type, bits / 8);
    hdf5_check(H5Tset_ebias(type, (std::size_t(1) << (exponent - 1)) - 1), "H5Tset_ebias");
    return type;
  };
  const auto pair_of = [](hid_t part, std::size_t size) {
    Hdf5Object type(H5Tcreate(H5T_COMPOUND, 2 * size), H5Tclose, "H5Tcreate");
    hdf5_check(H5Tinsert(type, "r", 0, part), "H5Tinsert");
    hdf5_check(H5Tinsert(type, "i", size, part), "H5Tinsert");
    return type;
  };
  switch (dtype) {
    case DType::boolean: {
      Hdf5Object type(H5Tenum_create(H5T_STD_I8LE), H5Tclose, "H5Tenum_create");
      for (const std::int8_t value : std::initializer_list<std::int8_t>{0, 1})
        hdf5_check(H5Tenum_insert(type, value == 0 ? "FALSE" : "TRUE", &value), "H5Tenum_insert");
      return type;
    }
    case DType::int8: return copy(H5T_STD_I8LE);
    case DType::uint8: return copy(H5T_STD_U8LE);
    case DType::int16: return copy(H5T_STD_I16LE);
    case DType::uint16: return copy(H5T_STD_U16LE);
    case DType::int32: return copy(H5T_STD_I32LE);
    case DType::uint32: return copy(H5T_STD_U32LE);
    case DType::int64: return copy(H5T_STD_I64LE);
    case DType::uint64: return copy(H5T_STD_U64LE);
    case DType::float16: return short_float(16, 5);
    case DType::bfloat16: return short_float(16, 8);
    case DType::float8_e4m3: return short_float(8, 4);
    case DType::float8_e5m2: return short_float(8, 5);
    case DType::float32: return copy(H5T_IEEE_F32LE);
    case DType::complex64: return pair_of(H5T_IEEE_F32LE, 4);
    case DType::complex128: return pair_of(H5T_IEEE_F64LE, 8);
    case DType::float64: break;
  }
  return copy(H5T_IEEE_F64LE);
}

/// The DType of a type in a file, of any byte order: HDF5 converts it.
/// @throws Error if there is none
inline DType dtype_of_hdf5(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_COMPOUND && H5Tget_nmembers(type) == 2) {
    const auto part = [&](unsigned m, const char* wanted) {
      char* name = H5Tget_member_name(type, m);
      const bool is_wanted = name != nullptr && std::string(name) == wanted;
      H5free_memory(name);
      if (!is_wanted) throw Error("HDF5", "it has other compounds than complex numbers (r, i)");
      return dtype_of_hdf5(
          {Hdf5Object(H5Tget_member_type(type, m), H5Tclose, "H5Tget_member_type")});
    };
    const DType real = part(0, "r");
    if (real == part(1, "i")) {
      if (real == DType::float32) return DType::complex64;
      if (real == DType::float64) return DType::complex128;
    }
  }
  const Hdf5Object copy(H5Tcopy(type), H5Tclose, "H5Tcopy");
  if (kind == H5T_INTEGER || kind == H5T_FLOAT)
    hdf5_check(H5Tset_order(copy, H5T_ORDER_LE), "H5Tset_order");
  for (int d = 0; d < int(std::size(dtype_facts)); ++d)
    if (H5Tequal(copy, hdf5_type(DType(d))) > 0) return DType(d);
  throw Error("HDF5", "its elements are " + std::string(kind == H5T_STRING ? "strings"
                                                        : kind == H5T_COMPOUND
                                                            ? "compounds"
                                                            : "of a type that tensors lack"));
}

/// The extents of a dataspace. @throws Error if it has more dimensions than tensors have
inline Shape hdf5_extents(hid_t space) {
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  if (H5Sget_simple_extent_type(space) == H5S_NULL) throw Error("HDF5", "it has no value");
  const int dims = hdf5_check(H5Sget_simple_extent_dims(space, extents.data(), nullptr),
                              "H5Sget_simple_extent_dims");
  if (dims > max_dims)
    throw Error("HDF5", "it has " + std::to_string(dims) + " dimensions, more than tensors have");
  Shape shape = Shape::filled(dims, 0);
  for (int d = 0; d < dims; ++d) shape[d] = index_t(extents[std::size_t(d)]);
  return shape;
}

inline std::array<hsize_t, std::size_t(max_dims)> hdf5_sizes(const Shape& shape) {
  std::array<hsize_t, std::size_t(max_dims)> sizes{};
  for (int d = 0; d < shape.dims; ++d) sizes[std::size_t(d)] = hsize_t(shape[d]);
  return sizes;
}

inline Hdf5Object hdf5_space(const Shape& shape) {
  const auto sizes = hdf5_sizes(shape);
  if (shape.dims == 0) return {H5Screate(H5S_SCALAR), H5Sclose, "H5Screate"};
  return {H5Screate_simple(shape.dims, sizes.data(), nullptr), H5Sclose, "H5Screate_simple"};
}

}  // namespace cleave::inline v0::detail

#endif
