// Checks gradients against central differences, on one rank, in double precision.
//
// For a real loss L = Re(sum conj(g) y), the gradient of a real element is dL/dx, that of a
// complex one dL/dRe(x) + i dL/dIm(x).
#pragma once

#include <string>
#include <vector>

#include "verify.hpp"

namespace cleave::testing {

/// Numbers with distance from each other and from 0, where functions have corners.
inline Number64 smooth_value(DType type, Domain domain, bool zero, std::size_t i, int operand) {
  const std::size_t mixed = (i * 37 + std::size_t(operand) * 53 + 11) % 97;
  const double size = 0.35 + double(mixed) / 61 + double(operand) / 400;
  if (domain == Domain::unit) return mixed % 3 == 0 ? size / 2.5 : -size / 2.5;
  if (domain == Domain::chances) return size / 2.5;
  if (domain == Domain::above_one) return size + 1;
  const double sign = domain == Domain::positive || mixed % 3 == 0 ? 1 : -1;
  if (type == DType::boolean) return mixed % 2 == 0 ? 1 : 0;
  if (domain == Domain::classes) return double(mixed % 2);
  if (zero) return 0;
  return is_complex_type(type) ? Number64(sign * size, 0.2 + double((mixed * 7) % 13) / 9)
                               : Number64(sign * size);
}

class Slopes {
 public:
  Slopes(const Subject& subject, const std::vector<naive::Indices>& shapes) : subject_(subject) {
    std::vector<Shape> extents;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      extents.push_back(naive::shape_of(shapes[i]));
      Numbers x(shapes[i]);
      for (std::size_t n = 0; n < x.values.size(); ++n)
        x.values[n] = smooth_value(subject.types[i], subject.naive.domain_of(i),
                                   subject.naive.has_zeros && n % 4 == 1, n, int(i));
      if (subject.naive.domain_of(i) == Domain::dominant)
        for (const naive::Indices& index : naive::all_indices(shapes[i]))
          x.at(index) = index[index.size() - 2] == index.back() ? 1. + std::abs(x.at(index).real())
                                                                : 0.1 * x.at(index);
      x_.push_back(x);
    }
    graph_ = subject.call(extents);
    y_ = call(x_);
    g_ = Numbers(naive::to_indices(y_.shape));
    for (std::size_t n = 0; n < g_.values.size(); ++n)
      g_.values[n] = rounded(y_.dtype, Number64(double(n % 5) - 1.5, double(n % 3) - 0.5));
    extents_ = extents;
  }

  /// Checks the gradient of an operand.
  void check(int operand, const Program& program, Verdict& verdict) const {
    std::vector<Held> inputs{local_of(y_.dtype, g_), y_};
    for (int i = 0; i < subject_.operands; ++i)
      inputs.push_back(local_of(subject_.types[std::size_t(i)], x_[std::size_t(i)]));
    compare(operand, GraphRun(program(extents_), nullptr)(inputs)[0], "the gradient", verdict);
  }

  /// Checks the gradients of all operands computed by `backward`.
  void check_tape(Verdict& verdict) const {
    std::vector<Held> inputs{local_of(y_.dtype, g_)};
    for (std::size_t i = 0; i < x_.size(); ++i)
      inputs.push_back(local_of(subject_.types[i], x_[i]));
    const std::vector<Held> found = GraphRun(subject_.tape(extents_), nullptr)(inputs);
    for (std::size_t k = 0; k < found.size(); ++k)
      compare(subject_.gradient[k].first, found[k], "what backward gives", verdict);
  }

 private:
  static constexpr double step = 1e-5;

  /// Compares every element with its central difference.
  void compare(int operand, const Held& gradient, const char* what, Verdict& verdict) const {
    const std::size_t at = std::size_t(operand);
    const Numbers found = summed(gradient, x_[at].shape);
    const bool is_complex = is_complex_type(subject_.types[at]);
    std::string fault;
    for (std::size_t n = 0; fault.empty() && n < found.values.size(); ++n) {
      const Number64 expected(slope(at, n, {step, 0}), is_complex ? slope(at, n, {0, step}) : 0);
      if (!close(found.values[n], expected, 1e-6))
        fault = "element " + std::to_string(n) + " is " + text(found.values[n]) +
                ", differences say " + text(expected);
    }
    verdict.note(fault, [&] {
      return what + (" in operand " + std::to_string(operand)) + " of " + subject_.name;
    });
  }

  static std::string text(const Number64& value) {
    return std::to_string(value.real()) + " + " + std::to_string(value.imag()) + "i";
  }

  Held call(const Arrays& x) const {
    std::vector<Held> inputs;
    for (std::size_t i = 0; i < x.size(); ++i) inputs.push_back(local_of(subject_.types[i], x[i]));
    return GraphRun(graph_, nullptr)(inputs)[0];
  }

  double loss(const Arrays& x) const {
    const std::vector<Number64> y = local_elements(call(x));
    double sum = 0;
    for (std::size_t n = 0; n < y.size(); ++n) sum += (std::conj(g_.values[n]) * y[n]).real();
    return sum;
  }

  double slope(std::size_t operand, std::size_t n, const Number64& by) const {
    Arrays more = x_, less = x_;
    more[operand].values[n] += by;
    less[operand].values[n] -= by;
    return (loss(more) - loss(less)) / (2 * step);
  }

  /// The gradient of a broadcast operand: the sum over its repetitions.
  static Numbers summed(const Held& gradient, const naive::Indices& shape) {
    const naive::Indices from = naive::to_indices(gradient.shape);
    Numbers result(shape);
    const std::vector<Number64> values = local_elements(gradient);
    std::size_t n = 0;
    for (const naive::Indices& index : naive::all_indices(from)) {
      naive::Indices own(index.end() - std::ptrdiff_t(shape.size()), index.end());
      for (std::size_t d = 0; d < own.size(); ++d)
        if (shape[d] == 1) own[d] = 0;
      result.at(own) += values[n++];
    }
    return result;
  }

  const Subject& subject_;
  Arrays x_{};
  std::vector<Shape> extents_{};
  spmd::Graph graph_{};
  Held y_{};
  Numbers g_{};
};

/// Checks all gradients of a subject, for all extents.
inline void verify_slopes(const Subject& subject, Verdict& verdict) {
  if (subject.gradient.empty()) return;
  for (const auto& shapes : shapes_of(subject, false)) {
    const Slopes slopes(subject, shapes);
    for (const auto& [operand, program] : subject.gradient) slopes.check(operand, program, verdict);
    slopes.check_tape(verdict);
  }
}

}  // namespace cleave::testing
