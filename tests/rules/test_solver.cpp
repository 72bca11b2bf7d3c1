#include <vector>

#include <doctest/doctest.h>

#include <cleave/rules/explain_solution.hpp>
#include <cleave/rules/solver.hpp>

using namespace cleave;

namespace {

struct Mul {};   // a matrix product
struct Plus {};  // elementwise, linear in both operands together
struct Nonlinear {};
struct RowMax {};
struct Largest2 {};
struct Hot {};  // adds a last dimension
struct Pinned {};
struct Part {};   // a slice of the last dimension
struct Joint {};  // a concatenation

constexpr Placement R = Placement::replicate();
constexpr Placement S0 = Placement::shard(0);
constexpr Placement S1 = Placement::shard(1);
constexpr Placement Psum = Placement::partial(ReduceOp::sum);
constexpr Placement Pavg = Placement::partial(ReduceOp::avg);
constexpr Placement Pmax = Placement::partial(ReduceOp::max);
constexpr Placement Pmin = Placement::partial(ReduceOp::min);

constexpr Layout on(std::initializer_list<Placement> placements) {
  Layout layout;
  for (const Placement& p : placements) layout[layout.axes++] = p;
  return layout;
}

template <class Op>
Solution solved(const Layout& a, const Layout& b = {}, const Layout* asked = nullptr) {
  return solve(rule_of<Op>, {a, b}, asked);
}

}  // namespace

template <>
struct cleave::sharding_rule<Mul> {
  static constexpr const char* factors = "ik,kj->ij";
  static constexpr const char* partials = "sum,R->sum; R,sum->sum; avg,R->avg; R,avg->avg";
};
template <>
struct cleave::sharding_rule<Plus> {
  static constexpr const char* factors = "ij,ij->ij";
  static constexpr const char* partials = "sum,sum->sum; max,R->max; R,max->max";
};
template <>
struct cleave::sharding_rule<Nonlinear> {
  static constexpr const char* factors = "ij->ij";
};
template <>
struct cleave::sharding_rule<RowMax> {
  static constexpr const char* factors = "ij->i";
  static constexpr ReduceOp reduction = ReduceOp::max;
  static constexpr const char* partials = "max->max";
};
template <>
struct cleave::sharding_rule<Largest2> {
  static constexpr const char* factors = "ij->ij";
  static constexpr const char* partials = "max->max";
};
template <>
struct cleave::sharding_rule<Hot> {
  static constexpr const char* factors = "i->ij";
};
template <>
struct cleave::sharding_rule<Part> {
  static constexpr const char* factors = "ij->ik";
  static constexpr const char* reads = "jk";
};
template <>
struct cleave::sharding_rule<Joint> {
  static constexpr const char* factors = "i,j->k";
  static constexpr const char* reads = "ikjk";
};
template <>
struct cleave::sharding_rule<Pinned> {
  static constexpr const char* factors = "ij->ij";
  static constexpr const char* replicated = "j";
};

TEST_CASE("operands that fit are left alone") {
  struct Row {
    Placement a, b, result;
  };
  for (const Row& row : std::vector<Row>{{R, R, R},
                                         {S0, R, S0},
                                         {R, S1, S1},
                                         {S1, S0, Psum},
                                         {Psum, R, Psum},
                                         {R, Psum, Psum},
                                         {Pavg, R, Pavg},
                                         {R, Pavg, Pavg}}) {
    const Solution s = solved<Mul>(on({row.a}), on({row.b}));
    CHECK(s.required[0] == on({row.a}));
    CHECK(s.required[1] == on({row.b}));
    CHECK(s.result[0] == on({row.result}));
    CHECK(s.cost == MoveCount{});
  }
}

TEST_CASE("a slice is better than any communication, and worse than nothing") {
  const Solution s = solved<Mul>(on({S1}), on({R}));
  CHECK(s.required[0] == on({S1}));
  CHECK(s.required[1] == on({S0}));
  CHECK(s.result[0] == on({Psum}));
  CHECK(s.cost.count(Move::slice) == 1);
  CHECK(s.cost.count(Move::all_reduce) == 0);
}

TEST_CASE("an operand moves by the cheapest kind of communication") {
  SUBCASE("two shards of different dimensions: one all-to-all, the first operand stays") {
    const Solution s = solved<Plus>(on({S1}), on({S0}));
    CHECK(s.required[0] == on({S1}));
    CHECK(s.required[1] == on({S1}));
    CHECK(s.cost.count(Move::all_to_all) == 1);
  }
  SUBCASE("a gather, since the product over k would leave an all-reduce behind") {
    const Solution s = solved<Mul>(on({S0}), on({S0}));
    CHECK(s.required[1] == on({R}));
    CHECK(s.result[0] == on({S0}));
    CHECK(s.cost.count(Move::all_gather) == 1);
  }
  SUBCASE("a partial operand of a nonlinear op is reduced to a shard") {
    const Solution s = solved<Nonlinear>(on({Psum}));
    CHECK(s.required[0] == on({S0}));
    CHECK(s.cost.count(Move::reduce_scatter) == 1);
  }
  SUBCASE("and to the shard of the other operand") {
    const Solution s = solved<Plus>(on({Psum}), on({S1}));
    CHECK(s.required[0] == on({S1}));
    CHECK(s.required[1] == on({S1}));
    CHECK(s.result[0] == on({S1}));
  }
  SUBCASE("a pending reduction of another kind is done first") {
    const Solution s = solved<RowMax>(on({Psum}));
    CHECK(s.required[0] == on({S0}));
    CHECK(s.result[0] == on({S0}));
  }
}

TEST_CASE("one operand is gathered rather than another moved and the result scattered") {
  const Layout rows = on({S0});
  CHECK(solved<Mul>(on({S0}), on({S0}), &rows).required[1] == on({R}));
  // both operands and the result on a grid: neither axis shards k, of which each rank would add up
  // a part of the whole result
  const Layout grid = on({S0, S1});
  const Solution two = solved<Mul>(grid, grid, &grid);
  CHECK(two.required[0] == on({S0, R}));
  CHECK(two.required[1] == on({R, S1}));
  CHECK(two.computed[0] == grid);
  // an axis for each of i, k and j: every array is gathered or scattered over one of them
  const Layout x = on({S0, S1, S1}), w = on({S0, S0, S1});
  const Solution three = solved<Mul>(x, w, &w);
  CHECK(three.required[0] == on({S0, S1, R}));
  CHECK(three.required[1] == on({R, S0, S1}));
  CHECK(three.computed[0] == on({S0, Psum, S1}));
}

TEST_CASE("axes are solved on their own") {
  const Solution s = solved<Mul>(on({S0, R, S1, Psum}), on({R, S1, S0, R}));
  CHECK(s.cost == MoveCount{});
  CHECK(s.result[0] == on({S0, S1, Psum, Psum}));
}

TEST_CASE("a factor that must be replicated is gathered") {
  const Solution s = solved<Pinned>(on({S1, S0}));
  CHECK(s.required[0] == on({S0, S0}));  // an all-to-all moves less than a gather
  const Layout asked = on({R, S0});
  CHECK(solved<Pinned>(on({S1, S0}), {}, &asked).required[0] == on({R, S0}));
}

TEST_CASE("a new factor is sharded on request only") {
  CHECK(solved<Hot>(on({R})).result[0] == on({R}));
  const Layout asked = on({S1});
  const Solution s = solved<Hot>(on({R}), {}, &asked);
  CHECK(s.required[0] == on({R}));
  CHECK(s.computed[0] == on({S1}));
  CHECK(s.cost == MoveCount{});
}

TEST_CASE("a dimension of which the result reads more stays sharded") {
  const Solution slice = solved<Part>(on({S1}));
  CHECK(slice.required[0] == on({S1}));
  CHECK(slice.result[0] == on({S1}));
  CHECK(slice.cost.count(Move::read) == 1);
  CHECK(slice.cost.count(Move::all_gather) == 0);
  CHECK(solved<Part>(on({S0})).cost == MoveCount{});
  CHECK(solved<Part>(on({R})).result[0] == on({R}));
  const Layout asked = on({S1});
  CHECK(solved<Part>(on({R}), {}, &asked).cost == MoveCount{});  // every rank has what it reads
  CHECK(solved<Part>(on({Psum})).required[0] == on({S0}));  // scattered to where nothing is read
  // operands that the same indices read are sharded together
  const Solution joint = solved<Joint>(on({S0}), on({R}));
  CHECK(joint.required[1] == on({S0}));
  CHECK(joint.result[0] == on({S0}));
  CHECK(joint.cost.count(Move::read) == 2);
  CHECK(joint.cost.count(Move::slice) == 1);
}

TEST_CASE("the requested result chooses between operands that do not communicate") {
  Layout asked = on({R});
  SUBCASE("the product of two shards of k is reduced afterwards") {
    const Solution s = solved<Mul>(on({S1}), on({S0}), &asked);
    CHECK(s.computed[0] == on({Psum}));
    CHECK(s.result[0] == on({R}));
    CHECK(s.cost.count(Move::all_reduce) == 1);
  }
  SUBCASE("or scattered") {
    asked = on({S1});
    const Solution s = solved<Mul>(on({S1}), on({S0}), &asked);
    CHECK(s.computed[0] == on({Psum}));
    CHECK(s.cost.count(Move::reduce_scatter) == 1);
  }
  SUBCASE("replicated operands are sliced before rather than after") {
    asked = on({S1});
    const Solution s = solved<Mul>(on({R}), on({R}), &asked);
    CHECK(s.required[1] == on({S1}));
    CHECK(s.computed[0] == on({S1}));
  }
  SUBCASE("a partial operand is scattered to where the result is wanted") {
    asked = on({S1});
    CHECK(solved<Nonlinear>(on({Psum}), {}, &asked).required[0] == on({S1}));
  }
}

TEST_CASE("an inner reduction that does not commute is not overtaken by an outer one") {
  // the value is the sum over the first axis of the maximum over the second
  const Solution s = solved<Largest2>(on({Psum, Pmax}));
  CHECK(!s.required[0][0].is_partial());
  CHECK(!s.required[0][1].is_partial());
  // with sum and maximum exchanged, the inner sum is reduced and the outer maximum stays partial
  const Solution t = solved<Largest2>(on({Pmax, Psum}));
  CHECK(t.required[0][0] == Pmax);
  CHECK(!t.required[0][1].is_partial());
  CHECK(t.result[0][0] == Pmax);
}

TEST_CASE("the solver is a constant expression") {
  constexpr Solution s = solve(rule_of<Mul>, {on({S0, R}), on({R, S1})});
  static_assert(s.result[0] == on({S0, S1}));
  static_assert(s.cost == MoveCount{});
  CHECK(s.required[0] == on({S0, R}));
}

TEST_CASE("a solution explains itself") {
  const OperandLayouts operands{on({S0, R}), on({S0, S1})};
  CHECK(explain(rule_of<Mul>, operands, solve(rule_of<Mul>, operands)) ==
        "ik (Shard(0), Replicate)\n"
        "kj (Shard(0), Shard(1)) -> (Replicate, Shard(1))\n"
        "ij = (Shard(0), Shard(1))");
  const Layout asked = on({R, S1});
  CHECK(explain(rule_of<Mul>, operands, solve(rule_of<Mul>, operands, &asked)).size() > 0);
  CHECK(to_string(on({Pmin})) == "(Partial(min))");
}
