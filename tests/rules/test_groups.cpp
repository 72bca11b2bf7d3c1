#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/rules/explain_solution.hpp>
#include <cleave/rules/groups.hpp>
#include <cleave/rules/solver.hpp>

#include "naive.hpp"

using namespace cleave;

namespace groups {
namespace {

struct Merge {};
struct Divide {};
struct Regroup {};
template <int Case>
struct Broken {};

constexpr Placement R = Placement::replicate();
constexpr Placement S0 = Placement::shard(0);
constexpr Placement S1 = Placement::shard(1);
constexpr Placement S2 = Placement::shard(2);

Solution solved_on_axis(const Rule& rule, const Placement& x, const Placement* wanted) {
  Layout operand{{}, 1}, asked{{}, 1};
  operand[0] = x;
  if (wanted != nullptr) asked[0] = *wanted;
  return solve(rule, {operand}, wanted != nullptr ? &asked : nullptr);
}
template <class Op>
Solution solved(const Placement& x, const Placement* wanted = nullptr) {
  return solved_on_axis(rule_of<Op>, x, wanted);
}

}  // namespace
}  // namespace groups

template <>
struct cleave::sharding_rule<groups::Merge> {
  static constexpr const char* factors = "abc->(ab)c";
};
template <>
struct cleave::sharding_rule<groups::Divide> {
  static constexpr const char* factors = "(abc)d->abcd";
};
template <>
struct cleave::sharding_rule<groups::Regroup> {
  static constexpr const char* factors = "(ab)c->a(bc)";
};
template <>
struct cleave::sharding_rule<groups::Broken<0>> {
  static constexpr const char* factors = "(ab->ab";
};
template <>
struct cleave::sharding_rule<groups::Broken<1>> {
  static constexpr const char* factors = "()a->a";
};
template <>
struct cleave::sharding_rule<groups::Broken<2>> {
  static constexpr const char* factors = "((ab))->ab";
};
template <>
struct cleave::sharding_rule<groups::Broken<3>> {
  static constexpr const char* factors = "(ab)a->ab";
};
template <>
struct cleave::sharding_rule<groups::Broken<4>> {
  static constexpr const char* factors = "ab)->ab";
};

namespace groups {

TEST_CASE("letters in parentheses are one dimension") {
  constexpr Rule rule = rule_of<Merge>;
  CHECK(rule.fault == Rule::Fault::none);
  CHECK(rule.operand[0].dims == 3);
  CHECK(rule.result[0].dims == 2);
  CHECK(rule.result[0].is_group(0));
  CHECK(!rule.result[0].is_group(1));
  CHECK(rule.result[0].dim_of(0) == 0);   // a
  CHECK(rule.result[0].dim_of(1) == -1);  // b, inside
  CHECK(rule.replicated == 2u);
  CHECK(rule.kept == 1u);
  CHECK(to_string(rule) == "abc->(ab)c");
  CHECK(to_string(rule_of<Divide>) == "(abc)d->abcd");
  CHECK(to_string(rule_of<Regroup>) == "(ab)c->a(bc)");
}

TEST_CASE("invalid parentheses are errors") {
  CHECK(detail::read_rule<Broken<0>>().fault == Rule::Fault::factors);
  CHECK(detail::read_rule<Broken<1>>().fault == Rule::Fault::factors);
  CHECK(detail::read_rule<Broken<2>>().fault == Rule::Fault::factors);
  CHECK(detail::read_rule<Broken<3>>().fault == Rule::Fault::factors);
  CHECK(detail::read_rule<Broken<4>>().fault == Rule::Fault::factors);
}

TEST_CASE("the first factor of a group stays sharded, the others are made whole") {
  CHECK(solved<Merge>(S0).required[0][0] == S0);
  CHECK(solved<Merge>(S0).result[0][0] == S0);
  CHECK(solved<Merge>(S2).result[0][0] == S1);
  CHECK(solved<Merge>(S1).required[0][0] == S2);  // an all-to-all, not a gather
  CHECK(solved<Merge>(S1).result[0][0] == S1);
  CHECK(solved<Divide>(S0).result[0][0] == S0);
  CHECK(solved<Divide>(S1).result[0][0] == Placement::shard(3));
  CHECK(solved<Regroup>(S0).result[0][0] == S0);
  CHECK(solved<Regroup>(S1).required[0][0] == R);  // shards of c are inside bc, of a may end there
}

TEST_CASE("nothing is sharded for the sake of a group") {
  const Solution sliced = solved<Merge>(R, &S0);
  CHECK(sliced.required[0][0] == R);
  CHECK(sliced.computed[0][0] == R);
  CHECK(sliced.result[0][0] == S0);
  const Solution whole = solved<Merge>(S0, &R);
  CHECK(whole.required[0][0] == R);
  CHECK(whole.computed[0][0] == R);
  CHECK(solved<Merge>(S0, &S0).computed[0][0] == S0);
}

TEST_CASE("the extents of a group are the product of its factors'") {
  const index_t operand[] = {5, 3, 4};
  const detail::ExtentsRef shape{operand, 3};
  detail::FactorExtents extents{};
  CHECK(detail::read_extents(rule_of<Merge>, false, &shape, {}, extents).operand < 0);
  CHECK(extents.shape(rule_of<Merge>.result[0]) == Shape(std::array<index_t, 2>{15, 4}));
  const index_t merged[] = {24, 7};
  const detail::ExtentsRef whole{merged, 2};
  const Shape fresh(std::array<index_t, 3>{2, 3, 4});
  CHECK(detail::read_extents(rule_of<Divide>, false, &whole, fresh, extents).operand < 0);
  CHECK(extents.shape(rule_of<Divide>.result[0]) == Shape(std::array<index_t, 4>{2, 3, 4, 7}));
}

TEST_CASE("shards of a group agree where those of its first factor have the same elements") {
  int agree = 0, differ = 0;
  for (const naive::Indices& mesh : {naive::Indices{1, 1}, {2, 1}, {3, 1}, {2, 2}, {3, 2}, {2, 4}})
    for (index_t outer = 0; outer <= 13; ++outer)
      for (const index_t inner : {0, 1, 2, 3, 5}) {
        Layout layout{{S0, S0}, 2};
        bool expected = true;
        for (const naive::Indices& here : naive::all_indices(mesh)) {
          naive::Indices wanted;
          for (const index_t i : naive::owned(layout, 0, {outer}, mesh, here))
            for (index_t j = 0; j < inner; ++j) wanted.push_back(i * inner + j);
          expected = expected && naive::owned(layout, 0, {outer * inner}, mesh, here) == wanted;
        }
        CAPTURE(outer);
        CAPTURE(inner);
        CHECK(detail::shards_agree(outer, inner, mesh.data(), 2) == expected);
        ++(expected ? agree : differ);
      }
  CHECK(agree > 50);
  CHECK(differ > 50);
}

}  // namespace groups
