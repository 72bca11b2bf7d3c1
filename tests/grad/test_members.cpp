// The members of values: one list for Tensor, DTensor, Traced and what tracks the gradient of each.
// For every member and kind the test calls it and compares the result with the numbers that the
// values were made of, or the list gives the reason why the kind cannot have the member (and
// tests/compile_fail/members.cpp has the sentence). docs/concepts.md shows the list.
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/grad/backward.hpp>
#include <cleave/grad/local.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/spmd/trace_function.hpp>
#include <cleave/spmd/traced_factories.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

enum Kind : unsigned { tensor = 1, dtensor = 2, traced = 4, every = 7 };

constexpr index_t member_rows = 4, member_columns = 3;
constexpr double member_scalar = 2.5;

double member_element(index_t i, index_t j) { return double(10 * i + j); }

/// Whether x holds the whole matrix; a traced value only has its extents.
template <class X>
bool holds_matrix(const X& x) {
  const auto& value = cleave::detail::innermost(x);
  using V = std::remove_cvref_t<decltype(value)>;
  if constexpr (cleave::detail::is_traced<V>) {
    return value.shape()[0] == member_rows && value.shape()[1] == member_columns;
  } else {
    const Tensor<double, 2> all = value.full_tensor();
    bool same = all.shape() == std::array{member_rows, member_columns};
    for (index_t i = 0; same && i < member_rows; ++i)
      for (index_t j = 0; j < member_columns; ++j) same = same && all(i, j) == member_element(i, j);
    return same;
  }
}

struct ShapeMember {
  static constexpr const char* name = "shape()";
  static constexpr unsigned kinds = every;
  static constexpr const char* reason = "";
  static void check(const auto& x, const auto&) {
    CHECK(x.shape()[0] == member_rows);
    CHECK(x.shape()[1] == member_columns);
  }
};
struct ExtentMember {
  static constexpr const char* name = "extent(d)";
  static constexpr unsigned kinds = every;
  static constexpr const char* reason = "";
  static void check(const auto& x, const auto&) {
    CHECK(x.extent(0) == member_rows);
    CHECK(x.extent(-1) == member_columns);
    CHECK(x.extent(-2) == member_rows);
    for (const int d : {2, -3})
      CHECK(contains(error_of([&] { static_cast<void>(x.extent(d)); }),
                     "dimension " + std::to_string(d) + " of 2 does not exist [shapes [4, 3]"));
  }
};
struct SizeMember {
  static constexpr const char* name = "size()";
  static constexpr unsigned kinds = every;
  static constexpr const char* reason = "";
  static void check(const auto& x, const auto& scalar) {
    CHECK(x.size() == 12);
    CHECK(scalar.size() == 1);
  }
};
struct RedistributeMember {
  static constexpr const char* name = "redistribute(p..)";
  static constexpr unsigned kinds = every;
  static constexpr const char* reason = "";
  static void check(const auto& x, const auto&) {
    CHECK(holds_matrix(x.redistribute(Shard<1>{})));
    CHECK(holds_matrix(x.redistribute(Placements<Replicate>{})));
    using Y = decltype(x.redistribute(Shard<1>{}));
    static_assert(std::is_same_v<Y, decltype(x.redistribute(Placements<Shard<1>>{}))>);
    if constexpr (is_dtensor<cleave::detail::innermost_t<Y>>)
      CHECK(cleave::detail::innermost_t<Y>::layout[0].shards(1));
  }
};
struct ItemMember {
  static constexpr const char* name = "item()";
  static constexpr unsigned kinds = tensor | dtensor;
  static constexpr const char* reason = "a traced value has no elements";
  static void check(const auto& x, const auto& scalar) {
    static_assert(std::is_same_v<decltype(scalar.item()), double>);
    CHECK(scalar.item() == member_scalar);
    CHECK(contains(error_of([&] { static_cast<void>(x.item()); }),
                   "item: the tensor has 12 elements, not one"));
  }
};
struct ToLocalMember {
  static constexpr const char* name = "to_local()";
  static constexpr unsigned kinds = tensor | dtensor;
  static constexpr const char* reason = "a traced value has no elements";
  static void check(const auto& x, const auto&) {
    const auto local = x.to_local();
    const auto& part = cleave::detail::innermost(local);
    if constexpr (is_dtensor<cleave::detail::innermost_t<decltype(x)>>) {
      const Box box = cleave::detail::innermost(x).local_box();
      CHECK(Shape(part.shape()) == box.extents());
      for (index_t i = 0; i < part.extent(0); ++i)
        for (index_t j = 0; j < part.extent(1); ++j)
          CHECK(part(i, j) == member_element(box.begin[0] + i, box.begin[1] + j));
    } else {
      CHECK(holds_matrix(part));
    }
  }
};
struct FullTensorMember {
  static constexpr const char* name = "full_tensor()";
  static constexpr unsigned kinds = tensor | dtensor;
  static constexpr const char* reason = "a traced value has no elements";
  static void check(const auto& x, const auto&) {
    const auto all = x.full_tensor();
    static_assert(is_tensor<cleave::detail::innermost_t<decltype(all)>>);
    CHECK(holds_matrix(all));
  }
};
struct PlacementsMember {
  static constexpr const char* name = "placements()";
  static constexpr unsigned kinds = dtensor;
  static constexpr const char* reason =
      "a Tensor has none; the expansion determines those of a traced value";
  static void check(const auto& x, const auto& scalar) {
    static_assert(std::is_same_v<decltype(x.placements()), Placements<Shard<0>>>);
    static_assert(std::is_same_v<decltype(scalar.placements()), Placements<Replicate>>);
  }
};
struct MeshMember {
  static constexpr const char* name = "mesh()";
  static constexpr unsigned kinds = dtensor | traced;
  static constexpr const char* reason = "a Tensor has none";
  static void check(const auto& x, const auto&) {
    const auto ones_of_its_mesh = ones<double>({2, 5}, x.mesh());
    CHECK(Shape(ones_of_its_mesh.shape()) == Shape(std::array<index_t, 2>{2, 5}));
  }
};

/// Checks a member of x, and of x with its gradient, if this kind has it.
template <class Member, Kind Of, class X, class Scalar>
void check_member(const X& x, const Scalar& scalar) {
  INFO(Member::name);
  CHECK((Member::kinds == every) == std::string_view(Member::reason).empty());
  if constexpr ((Member::kinds & Of) != 0) {
    Member::check(x, scalar);
    Member::check(requires_grad(x), requires_grad(scalar));
  }
}

template <Kind Of, class X, class Scalar>
void check_members(const X& x, const Scalar& scalar) {
  const auto all = [&]<class... Member>(std::type_identity<Member>...) {
    (check_member<Member, Of>(x, scalar), ...);
  };
  all(std::type_identity<ShapeMember>{}, std::type_identity<ExtentMember>{},
      std::type_identity<SizeMember>{}, std::type_identity<RedistributeMember>{},
      std::type_identity<ItemMember>{}, std::type_identity<ToLocalMember>{},
      std::type_identity<FullTensorMember>{}, std::type_identity<PlacementsMember>{},
      std::type_identity<MeshMember>{});
}

}  // namespace

TEST_CASE("values of every kind have the members of the list") {
  on_ranks({1, 2, 3, 5}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const Tensor<double, 2> matrix({member_rows, member_columns});
    for (index_t i = 0; i < member_rows; ++i)
      for (index_t j = 0; j < member_columns; ++j) matrix(i, j) = member_element(i, j);
    const Tensor<double, 0> scalar;
    scalar.fill_(member_scalar);
    check_members<tensor>(matrix, scalar);
    check_members<dtensor>(distribute_tensor(matrix, mesh, Shard<0>{}),
                           distribute_tensor(scalar, mesh, Replicate{}));
    static_cast<void>(spmd::trace(
        [](const auto& x, const auto& s) {
          check_members<traced>(x, s);
          return x;
        },
        spmd::arg<double>("x", {member_rows, member_columns}), spmd::arg<double>("s")));
  });
}

TEST_CASE("extents and sizes of traced values are constants of a trace") {
  constexpr auto graph = spmd::frozen([] {
    return spmd::trace(
        [](const auto& x) {
          return mul(x, double(x.size() * 100 + x.extent(0) * 10 + x.extent(-1)));
        },
        spmd::arg<double>("x", {2, 3}));
  });
  double factor = 0;
  std::memcpy(&factor, graph.constants[0].bytes.data(), sizeof factor);
  CHECK(factor == 623);
}

TEST_CASE("gradients pass through the members that give local tensors") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto whole = requires_grad(ones<double>({5, 2}, mesh, Replicate{}));
    backward(sum(mul(whole.to_local(Partial<Sum>{}), double(world.rank() + 1))));
    const double ranks = world.size();
    const auto of_parts = grad(whole).full_tensor();
    CHECK(of_parts(4, 1) == ranks * (ranks + 1) / 2);  // every rank's term

    const auto rows = requires_grad(ones<double>({5, 2}, mesh, Shard<0>{}));
    backward(sum(mul(rows.to_local(), 3.0)));
    CHECK(grad(rows).full_tensor()(4, 1) == 3);

    const auto all = requires_grad(ones<double>({5, 2}, mesh, Shard<0>{}));
    backward(sum(mul(all.full_tensor(), 7.0)));
    CHECK(grad(all).full_tensor()(0, 1) == 7);
  });
}
