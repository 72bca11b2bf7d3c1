#include <doctest/doctest.h>

#include <cleave/rules/explain_solution.hpp>
#include <cleave/rules/solver.hpp>

using namespace cleave;

namespace groups {
namespace {

struct Merge {};
struct ReadMerge {};
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

template <>
struct cleave::sharding_rule<groups::ReadMerge> {
  static constexpr const char* factors = "abc->(ab)c";
  static constexpr const char* reads = "ba";
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

TEST_CASE("another factor of a group stays sharded if the first one reads it") {
  CHECK(rule_of<ReadMerge>.replicated == 0);
  const Solution read = solved<ReadMerge>(S1);
  CHECK(read.required[0][0] == S1);
  CHECK(read.result[0][0] == S0);
  CHECK(read.cost.count(Move::read) == 1);
  CHECK(solved<ReadMerge>(S0).cost == MoveCount{});
  CHECK(solved<ReadMerge>(S1, &R).required[0][0] == R);  // one gather
  CHECK(solved<ReadMerge>(S1, &S1).required[0][0] == S2);
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

}  // namespace groups
