// Gradients of what makes and takes apart global values: from_local, redistribute, to_local and
// distribute_tensor, against central differences of plain loops over the global array.
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>

#include "each_placements.hpp"
#include "errors.hpp"
#include "naive.hpp"
#include "network.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;
using naive::Indices;

namespace {

index_t position(const Indices& index, const Indices& extents) {
  index_t at = 0;
  for (std::size_t d = 0; d < index.size(); ++d) at = at * extents[d] + index[d];
  return at;
}

/// The factor of an element in the loss.
double weight(const Indices& index) { return 0.5 + double((3 * index[0] + 5 * index[1]) % 7); }

/// A global array as the addends of all ranks, and what changes in the loss if one of them changes.
class Addends {
 public:
  Addends(const Layout& layout, const Indices& shape, const Indices& mesh)
      : layout_(layout), shape_(shape), mesh_(mesh), ranks_(1) {
    bool has_extremes = false;
    for (int a = 0; a < layout.axes; ++a) {
      ranks_ *= mesh[std::size_t(a)];
      has_extremes = has_extremes || layout[a].op == ReduceOp::max || layout[a].op == ReduceOp::min;
    }
    for (index_t i = 0; i < shape[0] * shape[1]; ++i)
      for (index_t c = 0; c < ranks_; ++c) {  // different on all ranks: extremes are smooth there
        const double size = 0.35 + double((37 * i + 53 * c + 11) % 97) / 61;
        const bool is_zero = !has_extremes && (i + 2 * c) % 5 == 1;  // also two zeros in a product
        values_.push_back(is_zero ? 0 : (i + c) % 3 == 0 ? size : -size);
      }
  }

  const double& at(const Indices& index, const Indices& coordinate) const {
    return values_[std::size_t(position(index, shape_) * ranks_ + position(coordinate, mesh_))];
  }
  /// The derivative of the sum of weight(index) * value(index) with respect to an addend.
  double slope(const Indices& index, const Indices& coordinate) const {
    constexpr double step = 1e-5;
    const auto loss = [&](double change) {
      Addends other = *this;
      const_cast<double&>(other.at(index, coordinate)) += change;
      return weight(index) * other.value(index, {});
    };
    return (loss(step) - loss(-step)) / (2 * step);
  }

 private:
  /// The addends reduced axis by axis, innermost axis first.
  double value(const Indices& index, Indices at) const {
    const std::size_t axis = at.size();
    if (axis == mesh_.size()) return this->at(index, at);
    at.push_back(0);
    double result = value(index, at);
    const Placement& p = layout_[int(axis)];
    if (!p.is_partial()) return result;
    for (at.back() = 1; at.back() < mesh_[axis]; ++at.back())
      result = naive::combine(p.op, result, value(index, at));
    return p.op == ReduceOp::avg ? result / double(mesh_[axis]) : result;
  }

  Layout layout_;
  Indices shape_, mesh_;
  index_t ranks_;
  std::vector<double> values_{};
};

/// This rank's part of an array whose elements f(index) gives.
template <class F>
Tensor<double, 2> part_of(const Layout& layout, const Indices& shape, const MeshState& mesh,
                          const F& f) {
  const Indices extents = naive::to_indices(mesh.extents());
  const Indices here = naive::to_indices(mesh.coordinate());
  const Tensor<double, 2> part({index_t(naive::owned(layout, 0, shape, extents, here).size()),
                                index_t(naive::owned(layout, 1, shape, extents, here).size())});
  double* to = part.data();
  for (const Indices& index : naive::elements(layout, shape, extents, here)) *to++ = f(index);
  return part;
}

/// A test of one list of placements on one mesh.
template <class Mesh, class P>
struct Construction {
  static constexpr Layout layout = layout_of<P, 2>;
  const Mesh& mesh;
  Indices shape, here;
  Addends addends;
  Tracked<Tensor<double, 2>> x;

  Construction(const Mesh& m, const Indices& extents)
      : mesh(m),
        shape(extents),
        here(naive::to_indices(m.coordinate())),
        addends(layout, shape, naive::to_indices(m.extents())),
        x(requires_grad(part([&](const Indices& i) { return addends.at(i, own()); }))) {}

  Indices own() const { return naive::partial_coordinate(layout, here); }
  template <class F>
  Tensor<double, 2> part(const F& f) const {
    return part_of(layout, shape, mesh.state(), f);
  }
  void check_gradient() const {
    const auto expected = part([&](const Indices& i) { return addends.slope(i, own()); });
    CAPTURE(to_string(layout));
    CAPTURE(mesh.describe());
    check_close(grad(x), values_of(expected), 1e-6);
  }
};

/// from_local alone.
template <class Mesh, class P>
void check_from_local(const Mesh& mesh, P placements, const Indices& shape, World& world) {
  const Construction<Mesh, P> made(mesh, shape);
  const auto y = from_local(made.x, mesh, placements);
  using Gradient = gradient_t<std::remove_cvref_t<decltype(y.value())>>;
  const auto g = Gradient::unchecked(made.part(weight), mesh, y.shape());
  const CommTrace trace(world);
  backward(y, g);
  if (!tape::nonlinear_ops(made.layout).any()) CHECK(trace.events().empty());
  made.check_gradient();
}

/// from_local, redistribute and to_local: the loss uses what each rank holds in the end.
template <class Mesh, class P, class Q, class G>
void check_chain(const Mesh& mesh, P placements, Q target, G gradient, const Indices& shape) {
  const Construction<Mesh, P> made(mesh, shape);
  const auto y = to_local(from_local(made.x, mesh, placements).redistribute(target), gradient);
  constexpr Layout stated = layout_of<G, 2>;
  double share = 1;  // of this rank in the gradient: unequal addends that add up to the whole
  for (int a = 0; a < stated.axes; ++a)
    if (stated[a].is_partial()) {
      const double n = double(mesh.extents()[a]), rank = double(mesh.coordinate()[a]);
      share *= 2 * (rank + 1) / (n + 1) / (stated[a].op == ReduceOp::sum ? n : 1);
    }
  backward(y, part_of(layout_of<Q, 2>, shape, mesh.state(),
                      [&](const Indices& i) { return share * weight(i); }));
  made.check_gradient();
}

/// from_local and redistribute to another mesh.
template <class Mesh, class P, class Other>
void check_move(const Mesh& mesh, P placements, const Other& other, const Indices& shape) {
  const Construction<Mesh, P> made(mesh, shape);
  constexpr auto rows = Placements<Shard<0>>{};
  const auto y = from_local(made.x, mesh, placements).redistribute(other, rows);
  using Gradient = gradient_t<std::remove_cvref_t<decltype(y.value())>>;
  backward(y, Gradient::unchecked(part_of(Gradient::layout, shape, other.state(), weight), other,
                                  y.shape()));
  made.check_gradient();
}

/// Meshes of this world's ranks with two axes.
template <class F>
void each_matrix(World& world, const F& f) {
  const index_t n = world.size();
  for (const index_t rows : {index_t(1), index_t(2), n})
    if (n % rows == 0 && (rows != n || n > 2)) f(init_device_mesh<dp, tp>(world, {rows, n / rows}));
}

const std::vector<Indices> shapes{{5, 3}, {1, 2}, {0, 3}};  // uneven shards, empty ones, none

}  // namespace

TEST_CASE("an addend has the gradient of the reduced value, under all placements") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto line = init_device_mesh<dp>(world, {world.size()});
    for (const Indices& shape : shapes) {
      each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>, Partial<Avg>, Partial<Max>,
                      Partial<Min>, Partial<Product>>(
          [&](auto p) { check_from_local(line, p, shape, world); });
      each_matrix(world, [&](const auto& mesh) {
        each_placements<2, Replicate, Shard<0>, Partial<Sum>, Partial<Avg>, Partial<Max>,
                        Partial<Product>>([&](auto p) { check_from_local(mesh, p, shape, world); });
      });
    }
  });
}

TEST_CASE("gradients pass through redistribute and to_local to the addends") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto line = init_device_mesh<dp>(world, {world.size()});
    std::vector<int> backwards;
    for (int r = world.size(); r-- > 0;) backwards.push_back(r);
    const auto reversed = init_device_mesh<row>(world, {world.size()}, backwards);
    for (const Indices& shape : shapes) {
      each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>, Partial<Avg>, Partial<Max>,
                      Partial<Min>, Partial<Product>>([&](auto p) {
        using R = Placements<Replicate>;
        check_chain(line, p, R{}, R{}, shape);
        check_chain(line, p, R{}, Placements<Partial<Sum>>{}, shape);
        check_chain(line, p, R{}, Placements<Partial<Avg>>{}, shape);
        check_chain(line, p, Placements<Shard<0>>{}, Placements<Shard<0>>{}, shape);
        check_chain(line, p, Placements<Shard<1>>{}, Placements<Shard<-1>>{}, shape);
        check_move(line, p, reversed, shape);
      });
      each_matrix(world, [&](const auto& mesh) {
        const auto all = [&](auto p) {
          using S = Placements<Shard<1>, Shard<0>>;
          check_chain(mesh, p, S{}, S{}, shape);
          check_chain(mesh, p, Placements<Replicate, Shard<0>>{},
                      Placements<Partial<Sum>, Shard<0>>{}, shape);
        };
        all(Placements<Shard<0>, Partial<Max>>{});
        all(Placements<Partial<Product>, Shard<0>>{});
        all(Placements<Partial<Min>, Partial<Avg>>{});
        all(Placements<Partial<Sum>, Replicate>{});
      });
    }
  });
}

TEST_CASE("equal candidates of a maximum share its gradient, over all axes that it reduces") {
  on_ranks({3, 4}, [](World& world) {
    const int n = world.size(), r = world.rank();
    const auto mesh = init_device_mesh<dp, tp>(world, {n == 4 ? 2 : 1, n == 4 ? 2 : 3});
    // the maximum is on all ranks but one, the minimum on that one; then all are equal
    const auto x = requires_grad(Tensor<double, 1>({2}, {r == 1 ? 1. : 7., 4.}));
    const auto largest = sum(from_local(x, mesh, Partial<Max>{}, Partial<Max>{}));
    const CommTrace trace(world);
    backward(largest);
    CHECK(trace.count(CollectiveKind::all_reduce) == 2);
    CHECK(trace.events().size() == 2);
    check_close(grad(x), {r == 1 ? 0 : 1. / (n - 1), 1. / n}, 1e-15);
    zero_grad(x);
    backward(sum(from_local(x, mesh, Partial<Min>{}, Partial<Min>{})));
    check_close(grad(x), {r == 1 ? 1. : 0., 1. / n}, 1e-15);
  });
}

TEST_CASE("an addend that was changed before backward is noticed where the gradient reads it") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = requires_grad(noise<2>({2, 3}, 1));
    const auto y = sum(from_local(x, mesh, Partial<Product>{}));
    const auto z = sum(from_local(x, mesh, Partial<Sum>{}));
    x.value().fill_(1.0);
    CHECK(contains(error_of([&] { backward(y); }), "was changed in place"));
    backward(z);  // a sum reads nothing
    check_close(grad(x), std::vector<double>(6, 1.0));
  });
}

TEST_CASE("distribute_tensor, a local function and a product of addends: the slope of the whole") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto a = noise<2>({5, 3}, 1);
    const auto x = requires_grad(a);
    const auto rows = distribute_tensor(x, mesh, Shard<0>{});
    const auto part = to_local(rows);
    const auto factors = sum(part * part, dim<0>{}) + 0.5;
    const auto y = from_local(factors, mesh, Partial<Product>{});
    backward(sum(full_tensor(y)));
    // the product over ranks of 0.5 + the sum over the rank's rows of a[i, j]^2
    const auto chunks = naive::chunks({0, 1, 2, 3, 4}, world.size());
    const auto loss = [&](index_t row, index_t column, double change) {
      double product = 1;
      for (const auto& chunk : chunks) {
        double factor = 0.5;
        for (const index_t i : chunk) factor += std::pow(a(i, column) + (i == row ? change : 0), 2);
        product *= factor;
      }
      return product;
    };
    std::vector<double> expected;
    for (index_t i = 0; i < 5; ++i)
      for (index_t j = 0; j < 3; ++j)
        expected.push_back((loss(i, j, 1e-5) - loss(i, j, -1e-5)) / 2e-5);
    check_close(grad(x), expected, 1e-6);
  });
}
