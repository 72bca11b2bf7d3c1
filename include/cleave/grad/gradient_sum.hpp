// The sum of the contributions to a value's gradient: one per use of the value.
//
// The gradient of a DTensor has its placements with Partial -> Replicate. Contributions arrive
// under any placements. Those of one layout are added locally; partials are reduced once per layout
// when backward reaches the value, not once per contribution.
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/dtensor/redistribution_spec.hpp>
#include <cleave/kernels/host/reduce_dims.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/spmd/traced.hpp>

namespace cleave::inline v0 {

template <class X>
class Tracked;

namespace tape {

template <class X>
inline constexpr bool is_tracked = false;
template <class X>
inline constexpr bool is_tracked<Tracked<X>> = true;

template <class X>
struct GradientType {
  using type = X;
};
template <class T, int Rank, class Mesh, class P>
struct GradientType<DTensor<T, Rank, Mesh, P>> {
  using type = DTensor<T, Rank, Mesh, without_partials_t<P>>;
};
template <class X>
struct GradientType<Tracked<X>> {
  using type = Tracked<typename GradientType<X>::type>;
};

}  // namespace tape

/// The type of a value's gradient: that of the value, with Replicate for Partial.
template <class X>
using gradient_t = typename tape::GradientType<X>::type;

namespace tape {

/// The dimensions (bits) in which x has extent 1 and its gradient g does not: x was repeated.
template <class G, class X>
constexpr unsigned repeated_dims(const G& g, const X& x) {
  const Shape from = shape_of(g), to = shape_of(x);
  unsigned mask = 0;
  for (int d = 0; d < to.dims; ++d)
    if (to[d] == 1 && from[d] != 1) mask |= 1u << d;
  return mask;
}

/// The sum over the dimensions of a mask, which are kept with extent 1; typed by element only.
template <class T, int Rank, class Device>
Tensor<T, Rank, Device> sum_repeated(const Tensor<T, Rank, Device>& g, unsigned mask) {
  auto extents = g.shape();
  Shape kept;
  for (int d = 0; d < Rank; ++d) {
    if (mask >> d & 1u) extents[std::size_t(d)] = 1;
    else kept[kept.dims++] = extents[std::size_t(d)];
  }
  const Tensor<T, Rank, Device> sum(extents);
  if (cleave::detail::is_dry()) return sum;
  reduce_dims<Sum>(kernels::On<Device>{}, kernels::read(g), mask,
                   kernels::Strided<T>{sum.data(), kept, row_major_strides(kept)});
  return sum;
}

/// The gradient of a traced value, or of a value that is tracked twice: summed and placed by
/// operations, so that it can itself be traced and differentiated.
template <class X>
class GradientSum {
 public:
  using G = gradient_t<X>;

  constexpr bool empty() const { return !sum_.has_value(); }
  constexpr void clear() { sum_.reset(); }

  template <class A>
  constexpr void add(const A& g, const X& x) {
    if constexpr (A::dims > X::dims) {
      add(cleave::sum(g, dim<0>{}), x);
    } else {
      const G arrived = fold<0>(g, x);
      if (!sum_) sum_.emplace(arrived);
      else sum_.emplace(cleave::add(*sum_, arrived));
    }
  }

  /// Moves the contributions to the sum of the same value under other placements.
  constexpr void pour_into(GradientSum& sum) {
    if (!sum.sum_) sum.sum_.emplace(*sum_);
    else sum.sum_.emplace(cleave::add(*sum.sum_, *sum_));
    clear();
  }

  constexpr G settle(const X& x) const { return placed(*sum_, x); }

 private:
  template <class A>
  static constexpr G placed(const A& g, const X& x) {
    const auto there = cleave::detail::call_as(cleave::detail::like(x), ops::Redistribute{}, g);
    if constexpr (is_tracked<X> && !is_tracked<A>) return G(there);
    else return there;
  }

  /// Sums over repeated dimensions, one after the other.
  template <int D, class A>
  static constexpr G fold(const A& g, const X& x) {
    if constexpr (D == X::dims) {
      if constexpr (std::is_same_v<A, G> && !is_tracked<X>) return g;
      else return placed(g, x);
    } else if (repeated_dims(g, x) >> D & 1u) {
      return fold<D + 1>(placed(unsqueeze(cleave::sum(g, dim<D>{}), dim<D>{}), x), x);
    } else {
      return fold<D + 1>(g, x);
    }
  }

  std::optional<G> sum_{};
};

template <class T, int Rank, class Device>
class GradientSum<Tensor<T, Rank, Device>> {
  using X = Tensor<T, Rank, Device>;

 public:
  constexpr bool empty() const { return !sum_.has_value(); }
  void clear() { sum_.reset(); }

  template <int More>
  void add(const Tensor<T, More, Device>& g, const X& x) {
    if constexpr (More > Rank) {
      add(cleave::sum(g, dim<0>{}), x);
    } else {
      const unsigned mask = repeated_dims(g, x);
      const X arrived = mask != 0 ? sum_repeated(g, mask) : g;
      if (!sum_) sum_.emplace(arrived);
      else sum_.emplace(cleave::add(*sum_, arrived));
    }
  }

  X settle(const X&) const { return *sum_; }

 private:
  std::optional<X> sum_{};
};

/// Local elements with their placements as a value.
template <class T, int Rank, class Device>
struct PlacedLocal {
  Layout layout;
  Tensor<T, Rank, Device> local;
};

template <class T, int Rank, class Mesh, class P>
class GradientSum<DTensor<T, Rank, Mesh, P>> {
  using X = DTensor<T, Rank, Mesh, P>;
  using Device = typename Mesh::device_type;
  using Local = Tensor<T, Rank, Device>;

 public:
  using Part = PlacedLocal<T, Rank, Device>;

  bool empty() const { return !first_.has_value(); }
  void clear() {
    first_.reset();
    others_.clear();
  }

  template <int More, class Q>
  void add(const DTensor<T, More, Mesh, Q>& g, const X& x) {
    if constexpr (More > Rank) {
      add(cleave::sum(g, dim<0>{}), x);
    } else {
      Part part{g.actual_layout(), g.to_local()};
      if (const unsigned mask = repeated_dims(g, x); mask != 0) {
        part.local = sum_repeated(part.local, mask);
        for (int a = 0; a < part.layout.axes; ++a)
          if (part.layout[a].shards() && (mask >> part.layout[a].dim & 1u))
            part.layout[a] = Placement::partial(ReduceOp::sum);
      }
      put(std::move(part));
    }
  }

  void put(Part part) {
    if (!first_) {
      first_.emplace(std::move(part));
      return;
    }
    if (joined(*first_, part)) return;
    for (Part& other : others_)
      if (joined(other, part)) return;
    others_.push_back(std::move(part));
  }

  /// Moves all contributions to the sum of the same value under other placements.
  template <class Other>
  void pour_into(Other& sum) {
    sum.put(std::move(*first_));
    for (Part& part : others_) sum.put(std::move(part));
    clear();
  }

  /// The sum under x's placements, partials resolved, except on the axes in `left`: there the
  /// result stays Partial(sum) if a contribution is, and the caller reduces it.
  ///
  /// @collective every rank of the mesh, if contributions have to be redistributed
  Part collect(const X& x, AxisMask left = 0) const {
    Layout to = gradient_t<X>::layout.with_numbers_of(x.actual_layout());
    const auto leave_partial = [&](const Part& part) {
      for (int a = 0; a < to.axes; ++a)
        if ((left >> a & 1u) && part.layout[a].is_partial()) to[a] = part.layout[a];
    };
    leave_partial(*first_);
    for (const Part& other : others_) leave_partial(other);
    Part total{to, brought(*first_, to, x)};
    for (const Part& other : others_) total.local = cleave::add(total.local, brought(other, to, x));
    return total;
  }

  gradient_t<X> settle(const X& x) const {
    return gradient_t<X>::unchecked(collect(x).local, x.mesh(), x.shape(), x.actual_layout());
  }

 private:
  /// Adds a contribution to `have` if their layouts are equal. @return whether it did
  static bool joined(Part& have, const Part& part) {
    if (!(have.layout == part.layout)) return false;
    have.local = cleave::add(have.local, part.local);
    return true;
  }

  /// A contribution under other placements. Where a replicated one becomes Partial, the first rank
  /// of the axis keeps its values, and the other ranks contribute zeros.
  Local brought(const Part& part, const Layout& to, const X& x) const {
    Layout between = to;
    bool gives = true;
    for (int a = 0; a < to.axes; ++a)
      if (to[a].is_partial() && !part.layout[a].is_partial()) {
        between[a] = Placement::replicate();
        gives = gives && x.mesh().coordinate()[a] == 0;
      }
    const MeshState& mesh = x.mesh().state();
    Local local = part.local;
    if (!(between == part.layout))
      local = cleave::detail::redistribute_local(local, {part.layout, between}, mesh, x.shape(),
                                                 "backward");
    if (!gives) {
      local = Local(local.shape());
      local.fill_(T(0));
    }
    return local;
  }

  std::optional<Part> first_{};  ///< most values have one layout of contributions
  std::vector<Part> others_{};
};

}  // namespace tape

}  // namespace cleave::inline v0
