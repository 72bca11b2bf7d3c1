#pragma once

#include "../list/losses.hpp"
#include "operation.hpp"

namespace cleave::testing {

/// The losses of single elements or rows, reduced as `By` says.
template <Reduction By>
Numbers naive_reduced(const Numbers& losses) {
  if constexpr (By == Reduction::none) return losses;
  Numbers result;
  for (const Number64& loss : losses.values) result.values[0] += loss;
  if (By == Reduction::mean) result.values[0] /= double(losses.values.size());
  return result;
}

/// f(x, y) element by element.
template <Reduction By, class F>
Naive naive_loss(F f, std::vector<Domain> domain = {}) {
  return Naive{[f](const Arrays& x) {
                 Numbers losses = x[0];
                 for (std::size_t i = 0; i < losses.values.size(); ++i)
                   losses.values[i] = f(re(x[0].values[i]), re(x[1].values[i]));
                 return naive_reduced<By>(losses);
               },
               std::move(domain)};
}
template <Reduction By>
Naive naive_of(ops::MseLoss<By>) {
  return naive_loss<By>([](double x, double y) { return (x - y) * (x - y); });
}

/// -y log(p) - (1 - y) log(1 - p)
inline double naive_cross_entropy(double p, double y) {
  return -y * std::log(p) - (1 - y) * std::log(1 - p);
}
template <Reduction By>
Naive naive_of(ops::BinaryCrossEntropy<By>) {
  return naive_loss<By>(naive_cross_entropy, {Domain::chances});
}
template <Reduction By>
Naive naive_of(ops::BinaryCrossEntropyWithLogits<By>) {
  return naive_loss<By>([](double z, double y) {
    return y * std::log1p(std::exp(-z)) + (1 - y) * std::log1p(std::exp(z));
  });
}

/// The loss of a row: log(sum exp(x[n, ..])) - x[n, class] for logits, -x[n, class] otherwise.
template <Reduction By>
Naive naive_loss_of_classes(bool of_logits) {
  Naive naive{[of_logits](const Arrays& x) {
                Numbers losses({x[0].shape[0]});
                for (index_t i = 0; i < losses.shape[0]; ++i) {
                  double sum = of_logits ? 0 : 1;
                  for (index_t j = 0; of_logits && j < x[0].shape[1]; ++j)
                    sum += std::exp(re(x[0].at({i, j})));
                  losses.at({i}) = std::log(sum) - re(x[0].at({i, index_t(re(x[1].at({i})))}));
                }
                return naive_reduced<By>(losses);
              },
              {Domain::any, Domain::classes}};
  naive.needs_elements = true;
  naive.extents = {{5, 4}, {1, 7}, {7, 5}};
  return naive;
}
template <Reduction By>
Naive naive_of(ops::NllLoss<By>) {
  return naive_loss_of_classes<By>(false);
}
template <Reduction By>
Naive naive_of(ops::ClassCrossEntropy<By>) {
  return naive_loss_of_classes<By>(true);
}

}  // namespace cleave::testing
