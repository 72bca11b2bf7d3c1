// Tensors as text: nested brackets, columns aligned, the middle of large tensors left out.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdio>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0 {

struct PrintOptions {
  int precision = 4;         ///< the most digits after the point, 0 to 17
  index_t threshold = 1000;  ///< more elements than this are summarised ..
  index_t edge = 3;          ///< .. to this many at both ends of each dimension
  int width = 80;            ///< characters per line; longer rows are wrapped
};

namespace detail {

// Templates of a single type: compiled where tensors are printed, not at every inclusion.

/// All values with the same number of decimals: the fewest that show the same as `precision`
/// decimals. A very large or very small value makes all of them scientific.
template <std::same_as<double> Value>
std::vector<std::string> decimal_texts(const std::vector<Value>& values, int precision);

/// The elements at those offsets, as text.
template <class T>
std::vector<std::string> element_texts(const T* data, const std::vector<index_t>& offsets,
                                       int precision) {
  std::vector<std::string> texts;
  if constexpr (is_complex<T>) {
    std::vector<double> real, imaginary;
    for (const index_t at : offsets) {
      real.push_back(double(data[at].real()));
      imaginary.push_back(double(data[at].imag()));
    }
    texts = decimal_texts(real, precision);
    const std::vector<std::string> j = decimal_texts(imaginary, precision);
    for (std::size_t i = 0; i < texts.size(); ++i)
      texts[i] += (j[i][0] == '-' ? "" : "+") + j[i] + "j";
  } else if constexpr (std::is_same_v<T, bool>) {
    for (const index_t at : offsets) texts.push_back(data[at] ? "true" : "false");
  } else if constexpr (std::is_integral_v<T>) {
    for (const index_t at : offsets) texts.push_back(std::to_string(data[at]));
  } else {
    std::vector<double> values;
    for (const index_t at : offsets) values.push_back(double(accumulator_t<T>(data[at])));
    texts = decimal_texts(values, precision);
  }
  return texts;
}

/// The offsets of the elements that are shown, in row-major order.
template <std::same_as<PrintOptions> Options>
std::vector<index_t> shown_offsets(const Shape& extents, const Shape& strides,
                                   const Options& options);

/// The texts of those elements with brackets and line breaks.
template <std::same_as<PrintOptions> Options>
std::string nested_text(const Shape& extents, const Shape& strides, const Options& options,
                        const std::vector<std::string>& elements);

}  // namespace detail

/// Element type and extents: "f32[3, 5]".
template <Element T, int Rank, class Device>
std::string type_text(const Tensor<T, Rank, Device>& tensor) {
  return short_name_of(dtype_of<T>()) + to_string(Shape(tensor.shape()));
}

/// The elements in nested brackets, e.g. "[[1., 2.],\n [3., 4.]]".
template <Element T, int Rank>
std::string to_string(const Tensor<T, Rank>& tensor, const PrintOptions& options = {}) {
  const Shape extents(tensor.shape()), strides(tensor.strides());
  return detail::nested_text(
      extents, strides, options,
      detail::element_texts(tensor.data(), detail::shown_offsets(extents, strides, options),
                            options.precision));
}

/// Prints type and elements: "f32[2, 2]", then the text of `to_string`.
template <Element T, int Rank>
void print(const Tensor<T, Rank>& tensor, const PrintOptions& options = {}) {
  std::printf("%s\n%s\n", type_text(tensor).c_str(), to_string(tensor, options).c_str());
}

/// Writes `to_string(tensor)`.
template <class Traits, Element T, int Rank>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const Tensor<T, Rank>& tensor) {
  return out << to_string(tensor);
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/tensor/print_body.hpp>
#endif
