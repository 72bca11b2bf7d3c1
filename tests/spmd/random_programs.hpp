// Random programs of small matrices, their inputs, and whether their outputs are equal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/spmd/erased_tensor.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "device.hpp"

namespace cleave::testing {

inline constexpr index_t edge = 6;
inline constexpr int random_inputs = 4;

/// A repeatable source of choices.
struct Choices {
  std::uint64_t state;
  int operator()(int below) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return int((state >> 33) % std::uint64_t(below));
  }
};

/// A random function of square matrices: products, sums, transposes, requests of placements.
inline spmd::Graph random_graph(Choices& choose, int nodes) {
  const auto body = [&](const auto&... x) {
    std::vector values{x...};
    for (int n = 0; n < nodes; ++n) {
      const auto pick = [&] { return values[std::size_t(choose(int(values.size())))]; };
      const auto a = pick(), b = pick();
      switch (choose(9)) {
        case 0: values.push_back(mul(matmul(a, b), 0.1)); break;
        case 1: values.push_back(add(a, b)); break;
        case 2: values.push_back(transpose(a)); break;
        case 3: values.push_back(add(mul(a, 0.25), sum(b, dim<0>{}))); break;
        case 4: values.push_back(redistribute(a, Shard<0>{}, Replicate{})); break;
        case 5: values.push_back(redistribute(a, Replicate{}, Shard<1>{})); break;
        case 6: values.push_back(redistribute(a, Replicate{}, Replicate{})); break;
        case 7: values.push_back(relu(sub(a, b))); break;
        default: values.push_back(mul(matmul(transpose(a), b), 0.1)); break;
      }
    }
    return std::vector(values.end() - 5, values.end());
  };
  const auto x = spmd::arg<double, TestDevice>("x", {edge, edge});
  return spmd::trace(body, x, x, x, x);
}

inline std::vector<Layout> random_schemas(Choices& choose) {
  const std::array on{Placement::replicate(), Placement::shard(0), Placement::shard(1)};
  std::vector<Layout> schemas;
  for (int i = 0; i < random_inputs; ++i) {
    Layout layout = Layout::replicated(2);
    for (int a = 0; a < 2; ++a) layout[a] = on[std::size_t(choose(3))];
    schemas.push_back(layout);
  }
  return schemas;
}

inline spmd::ErasedTensor part_of_numbers(const Layout& layout, const MeshState& mesh, int which) {
  const Shape shape = Shape::filled(2, edge);
  const Box box = owned_box(layout, shape, mesh.extents(), mesh.coordinate());
  const Tensor<double, 2> part({box.extent(0), box.extent(1)});
  for (index_t i = 0; i < part.extent(0); ++i)
    for (index_t j = 0; j < part.extent(1); ++j)
      part(i, j) = 1.0 / double(1 + (box.begin[0] + i) * 7 + (box.begin[1] + j) * 3 + which);
  const auto own = part.to(TestDevice{});
  return {own.storage(), own.view(), shape, layout};
}

inline bool are_same(const spmd::ErasedTensor& a, const spmd::ErasedTensor& b) {
  const auto host = [](const spmd::ErasedTensor& x) {
    return cleave::detail::TensorAccess::make<Tensor<double, 2, TestDevice>>(
               std::shared_ptr<void>(x.storage), x.local.data, x.local.extents.begin(),
               x.local.strides.begin())
        .clone()
        .to(Host{});
  };
  if (!(a.local.extents == b.local.extents) || !(a.layout == b.layout)) return false;
  const auto left = host(a), right = host(b);
  for (index_t i = 0; i < left.size(); ++i)
    if (left.data()[i] != right.data()[i]) return false;
  return true;
}

}  // namespace cleave::testing
