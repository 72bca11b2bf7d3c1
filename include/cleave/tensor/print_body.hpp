// Numbers as text, and the layout of nested brackets.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <cleave/core/shape.hpp>
#include <cleave/tensor/print.hpp>

namespace cleave::inline v0::detail {

/// `value` with that many decimals; an integer keeps its point.
inline std::string decimal_text(double value, int decimals, bool scientific) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[64];
  std::snprintf(text, sizeof text, scientific ? "%.*e" : "%.*f", decimals, value);
  return std::string(text) + (decimals == 0 && !scientific ? "." : "");
}

template <std::same_as<double> Value>
std::vector<std::string> decimal_texts(const std::vector<Value>& values, int precision) {
  precision = precision < 0 ? 0 : precision > 17 ? 17 : precision;
  bool scientific = false;
  for (const double value : values)
    scientific = scientific || (std::isfinite(value) && value != 0 &&
                                (std::fabs(value) >= 1e8 || std::fabs(value) < 1e-4));
  int decimals = scientific ? precision : 0;
  for (const double value : values) {
    if (scientific || !std::isfinite(value)) continue;
    const std::string text = decimal_text(value, precision, false);
    int needed = precision;
    while (needed > 0 && text[text.size() - std::size_t(precision - needed) - 1] == '0') --needed;
    if (needed > decimals) decimals = needed;
  }
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(decimal_text(value, decimals, scientific));
  return texts;
}

/// Which indices are shown, and the brackets and line breaks around them.
template <std::same_as<PrintOptions> Options>
class TensorText {
 public:
  TensorText(const Shape& extents, const Shape& strides, const Options& options)
      : extents_(extents), strides_(strides), options_(options) {
    summarised_ = extents.product() > options.threshold;
    collect(0, 0);
  }

  /// Offsets of the elements that are shown, in row-major order.
  const std::vector<index_t>& offsets() const { return offsets_; }

  /// @param elements  the texts of `offsets()`
  std::string around(const std::vector<std::string>& elements) {
    if (extents_.dims == 0) return elements[0];
    if (extents_.product() == 0)
      return extents_.dims == 1 ? "[]" : "[] of shape " + to_string(extents_);
    cell_ = 0;
    for (const std::string& element : elements)
      cell_ = element.size() > cell_ ? element.size() : cell_;
    text_.clear();
    next_ = 0;
    column_ = 0;
    nest(elements, 0);
    return text_;
  }

 private:
  /// How many indices are shown before the gap in dimension d; its extent if there is no gap.
  index_t head(int d) const {
    return summarised_ && extents_[d] > 2 * options_.edge ? options_.edge : extents_[d];
  }

  /// Calls shown(i) for the indices of dimension d that are shown, and gap() between the ends.
  template <class Shown, class Gap>
  void for_shown(int d, const Shown& shown, const Gap& gap) const {
    const index_t first = head(d), extent = extents_[d];
    for (index_t i = 0; i < first; ++i) shown(i);
    if (first == extent) return;
    gap();
    for (index_t i = extent - options_.edge; i < extent; ++i) shown(i);
  }

  void collect(int d, index_t offset) {
    if (extents_.product() == 0) return;
    if (d == extents_.dims) return offsets_.push_back(offset);
    for_shown(d, [&](index_t i) { collect(d + 1, offset + i * strides_[d]); }, [] {});
  }

  void put(const std::string& text) {
    text_ += text;
    column_ += text.size();
  }

  void new_line(int lines, int indent) {
    text_ += std::string(std::size_t(lines), '\n') + std::string(std::size_t(indent), ' ');
    column_ = std::size_t(indent);
  }

  /// Writes a comma, and a line break if `size` more characters exceed the line.
  void separate(int d, std::size_t size) {
    put(",");
    if (column_ + 2 + size > std::size_t(options_.width)) new_line(1, d + 1);
    else put(" ");
  }

  void nest(const std::vector<std::string>& elements, int d) {
    const bool row = d == extents_.dims - 1;
    bool first = true;
    const auto next = [&](std::size_t size) {
      if (!first && row) separate(d, size);
      if (!first && !row) put(","), new_line(extents_.dims - d - 1, d + 1);
      first = false;
    };
    put("[");
    for_shown(
        d,
        [&](index_t) {
          next(cell_);
          if (!row) return nest(elements, d + 1);
          const std::string& element = elements[next_++];
          put(std::string(cell_ - element.size(), ' ') + element);
        },
        [&] {
          next(3);
          put("...");
        });
    put("]");
  }

  const Shape extents_;
  const Shape strides_;
  const Options options_;
  bool summarised_ = false;
  std::vector<index_t> offsets_{};
  std::size_t cell_ = 0;    // characters of the widest element
  std::size_t next_ = 0;    // next element to write
  std::size_t column_ = 0;  // characters of the last line
  std::string text_{};
};

template <std::same_as<PrintOptions> Options>
std::vector<index_t> shown_offsets(const Shape& extents, const Shape& strides,
                                   const Options& options) {
  return TensorText<Options>(extents, strides, options).offsets();
}

template <std::same_as<PrintOptions> Options>
std::string nested_text(const Shape& extents, const Shape& strides, const Options& options,
                        const std::vector<std::string>& elements) {
  return TensorText<Options>(extents, strides, options).around(elements);
}

}  // namespace cleave::inline v0::detail
