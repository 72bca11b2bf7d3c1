// The text of a graph or program whose extents contain symbols: "[2*batch + 1, 64]".
//
// It is printed for several sets of extents. Numbers that differ are polynomials of the symbols, of
// degree two at most, which these texts determine; another text checks them.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <numeric>
#include <string>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/spmd/extent.hpp>
#include <cleave/spmd/remake.hpp>

namespace cleave::inline v0::spmd::detail {

/// Sets of extents, and the polynomials that go through numbers at these.
class ExtentsGrid {
 public:
  /// @param ranks  divides the differences of extents, so that shards differ by whole elements
  ExtentsGrid(const Symbols& symbols, index_t ranks) : symbols_(symbols) {
    base_ = symbols.samples();
    step_ = Shape::filled(symbols.count, 0);
    for (int i = 0; i < symbols.count; ++i) {
      const Symbol& symbol = symbols.of[std::size_t(i)];
      const index_t step = std::lcm(index_t(240), symbol.multiple_of);
      const index_t base = base_[i] / step * step * ranks;
      if (symbol.allows(base) && symbol.allows(base + 3 * step * ranks)) {
        base_[i] = base;
        step_[i] = step * ranks;
      } else if (symbol.allows(base_[i] - 3 * symbol.multiple_of)) {
        step_[i] = -symbol.multiple_of;
      }
    }
    for (int i = 0; i < symbols.count; ++i)
      if (step_[i] != 0) varied_.push_back(i);
    add({});
    for (const int i : varied_) add({i}), add({i, i});
    for (std::size_t a = 0; a < varied_.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) add({varied_[a], varied_[b]});
    Shape last = base_;
    for (const int i : varied_) last[i] += 3 * step_[i];
    points_.push_back(last);
  }

  const std::vector<Shape>& points() const { return points_; }

  /// The polynomial as text; "?" if there is none with small coefficients.
  std::string expression(const std::vector<index_t>& values) const {
    std::vector<Term> terms;
    double constant = double(values[0]);
    std::vector<double> linear(std::size_t(symbols_.count), 0.0);
    std::size_t next = 1 + 2 * varied_.size();
    const auto value = [&](std::size_t point) { return double(values[point]); };
    for (std::size_t a = 0; a < varied_.size(); ++a) {
      const double s = step(a), x = base(a), first = value(1 + 2 * a);
      const double square = (value(2 + 2 * a) - 2 * first + value(0)) / (2 * s * s);
      linear[a] += (first - value(0)) / s - square * (2 * x + s);
      constant -= square * x * x;
      terms.push_back({square, varied_[a], varied_[a]});
      for (std::size_t b = 0; b < a; ++b) {
        const double product =
            (value(next++) - first - value(1 + 2 * b) + value(0)) / (s * step(b));
        linear[a] -= product * base(b);
        linear[b] -= product * x;
        constant -= product * x * base(b);
        terms.push_back({product, varied_[b], varied_[a]});
      }
    }
    for (std::size_t a = 0; a < varied_.size(); ++a) {
      constant -= linear[a] * base(a);
      terms.push_back({linear[a], varied_[a], -1});
    }
    terms.push_back({constant, -1, -1});
    return text_of(terms, values);
  }

 private:
  /// A coefficient times up to two symbols.
  struct Term {
    double coefficient;
    int first, second;
  };

  double base(std::size_t a) const { return double(base_[varied_[a]]); }
  double step(std::size_t a) const { return double(step_[varied_[a]]); }

  void add(std::initializer_list<int> steps) {
    Shape point = base_;
    for (const int i : steps) point[i] += step_[i];
    points_.push_back(point);
  }

  std::string text_of(const std::vector<Term>& terms, const std::vector<index_t>& values) const {
    std::string text;
    std::vector<double> sums(points_.size(), 0.0);
    for (const Term& term : terms) {
      index_t over = 1;
      const auto error = [&] {
        const double n = term.coefficient * double(over);
        return std::abs(n - std::round(n));
      };
      while (over < 65 && error() > 1e-5) ++over;
      const auto n = index_t(std::round(term.coefficient * double(over)));
      if (n == 0 && (term.first >= 0 || !text.empty())) continue;
      const auto factor = [&](int i, const Shape& at) { return i < 0 ? 1.0 : double(at[i]); };
      for (std::size_t p = 0; p < points_.size(); ++p)
        sums[p] += double(n) / double(over) * factor(term.first, points_[p]) *
                   factor(term.second, points_[p]);
      std::string what;
      for (const int i : {term.first, term.second})
        if (i >= 0)
          what += (what.empty() ? "" : "*") + std::string(symbols_.of[std::size_t(i)].name);
      append_term(text, n, what);
      if (over > 1) text += "/" + std::to_string(over);
    }
    for (std::size_t p = 0; p < points_.size(); ++p)
      if (std::abs(sums[p] - double(values[p])) > 0.01) return "?";
    return text;
  }

  Symbols symbols_;
  Shape base_{}, step_{};
  std::vector<int> varied_{};  ///< the symbols that have several extents
  std::vector<Shape> points_{};
};

/// Texts that differ in numbers, as one; empty if they differ in anything else.
inline std::string joined_text(const std::vector<std::string>& texts, const ExtentsGrid& grid) {
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  std::vector<std::size_t> at(texts.size(), 0);
  std::string joined;
  while (at[0] < texts[0].size()) {
    const std::size_t begin = at[0];
    std::vector<index_t> numbers;
    bool differ = false;
    for (std::size_t p = 0; p < texts.size(); ++p) {
      const std::string& text = texts[p];
      std::size_t& next = at[p];
      if (next == text.size() || is_digit(text[next]) != is_digit(texts[0][begin]) ||
          (!is_digit(text[next]) && text[next] != texts[0][begin]))
        return "";
      index_t number = 0;
      if (!is_digit(text[next])) ++next;
      else
        while (next < text.size() && is_digit(text[next]))
          number = number * 10 + (text[next++] - '0');
      numbers.push_back(number);
      differ = differ || number != numbers[0];
    }
    joined += differ ? grid.expression(numbers) : texts[0].substr(begin, at[0] - begin);
  }
  return joined;
}

/// "batch: at least 1"
inline std::string conditions(const Symbol& symbol) {
  const std::string text = conditions_text(symbol);
  return symbol.name + (text.empty() ? "" : ": " + text);
}

/// The text of a symbolic graph or program.
/// @param ranks  of the mesh
/// @param print  prints what is made again
template <class X, class Print>
std::string symbolic_text(const X& of, index_t ranks, const Print& print) {
  std::string head;
  for (int i = 0; i < of.symbols.count; ++i)
    head += "extent " + conditions(of.symbols.of[std::size_t(i)]) + "\n";
  const ExtentsGrid grid(of.symbols, ranks);
  try {
    std::vector<std::string> texts;
    for (const Shape& extents : grid.points()) texts.push_back(print(remade(of, extents)));
    if (const std::string text = joined_text(texts, grid); !text.empty()) return head + text;
  } catch (const Error&) {  // a condition that the program does not state
  }
  const Shape sample = of.symbols.samples();
  return head + "with " + extents_text(of.symbols, sample) + ":\n" + print(remade(of, sample));
}

}  // namespace cleave::inline v0::spmd::detail
