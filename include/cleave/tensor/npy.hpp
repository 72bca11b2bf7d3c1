// Tensors in .npy files, NumPy's format, for the exchange of arrays with Python.
#pragma once

#include <bit>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/tensor.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0 {

namespace detail {

/// An array read from a file.
struct NpyArray {
  Shape extents{};
  bool fortran_order = false;
  std::shared_ptr<void> data{};
};

/// Where the elements of a file are, and how.
struct NpyElements {
  Shape extents{};
  bool fortran_order = false;
  index_t offset = 0;  ///< in bytes
};

/// Checks the header and the length of a file. @throws Error as `load_npy`
CLEAVE_INLINE NpyElements find_npy_elements(const std::string& path, DType dtype, int dims);

/// The header of a row-major array, with which its file begins.
CLEAVE_INLINE std::string npy_header_of(DType dtype, const Shape& extents);

/// Reads only the element type of a file.
CLEAVE_INLINE DType npy_dtype(const std::string& path);
[[noreturn]] CLEAVE_INLINE void throw_no_conversion(const std::string& path, DType stored,
                                                    DType wanted);

/// Reads an array of that element type and number of dimensions. Not a template, so that it is
/// compiled once for all tensors.
CLEAVE_INLINE NpyArray read_npy(const std::string& path, DType dtype, int dims);

CLEAVE_INLINE void write_npy(const std::string& path, const ConstView& dense);

template <class T>
constexpr void require_npy_type() {
  static_assert(!std::is_same_v<T, bfloat16> && !is_float8<T>,
                "cleave: .npy files have no bfloat16 and no floats of 8 bits; save and load float");
  static_assert(std::endian::native == std::endian::little,
                "cleave: .npy files are read and written on little-endian machines only");
}

}  // namespace detail

/// Reads an .npy file of exactly this element type and number of dimensions.
///
/// Format versions 1 to 3, little-endian. The result is row-major; a file in Fortran order is
/// transposed after reading.
/// @throws Error, with the path, for a file that is missing, truncated, longer than its array, not
///         an .npy file, big-endian, of another element type or of another number of dimensions
/// @cost one read of the file; twice the memory while a file in Fortran order is transposed
template <Element T, int Rank>
Tensor<T, Rank> load_npy(const std::string& path) {
  detail::require_npy_type<T>();
  detail::NpyArray array = detail::read_npy(path, dtype_of<T>(), Rank);
  T* data = static_cast<T*>(array.data.get());
  const auto extents = to_array<Rank>(array.extents);
  if (!array.fortran_order || Rank < 2)
    return Tensor<T, Rank>::adopt(data, extents, std::move(array.data));
  auto strides = extents;
  index_t step = 1;
  for (std::size_t d = 0; d < std::size_t(Rank); ++d) {
    strides[d] = step;
    step *= extents[d];
  }
  return Tensor<T, Rank>::adopt(data, extents, strides, std::move(array.data)).clone();
}

/// Reads an .npy file of any real element type, each element converted to a T as by a cast:
/// integers beyond 2^53 are rounded when they become double.
///
/// @throws Error as `load_npy`, and for complex elements of another type than T
/// @cost one read of the file, and a second array if the types differ
template <Element T, int Rank>
Tensor<T, Rank> load_npy_as(const std::string& path) {
  detail::require_npy_type<T>();
  const DType stored = detail::npy_dtype(path);
  return visit_dtype(stored, [&]<class U>() -> Tensor<T, Rank> {
    if constexpr (std::is_same_v<T, U>) {
      return load_npy<T, Rank>(path);
    } else if constexpr (is_complex<U> || std::is_same_v<U, bfloat16> || is_float8<U>) {
      detail::throw_no_conversion(path, stored, dtype_of<T>());
    } else {
      const Tensor<U, Rank> read = load_npy<U, Rank>(path);
      const Tensor<T, Rank> result(read.shape());
      for (index_t i = 0; i < read.size(); ++i) {
        if constexpr (is_complex<T>)
          result.data()[i] = static_cast<typename T::value_type>(read.data()[i]);
        else if constexpr (!std::is_same_v<T, accumulator_t<T>>)
          result.data()[i] = T(accumulator_t<T>(read.data()[i]));
        else result.data()[i] = static_cast<T>(read.data()[i]);
      }
      return result;
    }
  });
}

/// Writes a tensor to an .npy file (version 1, row-major), which replaces an existing file.
///
/// @throws Error, with the path, if the file cannot be written; a partial file remains
/// @cost a copy of the tensor first if it is not contiguous
template <Element T, int Rank>
void save_npy(const std::string& path, const Tensor<T, Rank>& tensor) {
  detail::require_npy_type<T>();
  const Tensor<T, Rank> dense = tensor.contiguous() ? tensor : tensor.clone();
  detail::write_npy(path, dense.view());
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/tensor/npy_body.hpp>
#endif
