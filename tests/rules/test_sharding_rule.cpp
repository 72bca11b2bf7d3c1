#include <doctest/doctest.h>

#include <cleave/rules/explain_solution.hpp>
#include <cleave/rules/sharding_rule.hpp>

using namespace cleave;

namespace {

struct Product3 {};
struct Scaled {};
struct Spaced {};
template <int Case>
struct Broken {};

}  // namespace

template <>
struct cleave::sharding_rule<Product3> {
  static constexpr const char* factors = "bik,bkj->bij";
  static constexpr const char* replicated = "b";
  static constexpr ReduceOp reduction = ReduceOp::max;
  static constexpr const char* partials = "sum,R->sum; R,sum->sum";
};
template <>
struct cleave::sharding_rule<Scaled> {
  static constexpr const char* factors = "ij,->ij";
};
template <>
struct cleave::sharding_rule<Spaced> {
  static constexpr const char* factors = " ij , jk ->  ik ";
  static constexpr const char* partials = " avg , R -> avg ;R,max->min";
};
template <>
struct cleave::sharding_rule<Broken<0>> {
  static constexpr const char* factors = "ij,jk";
};
template <>
struct cleave::sharding_rule<Broken<1>> {
  static constexpr const char* factors = "ii->i";
};
template <>
struct cleave::sharding_rule<Broken<2>> {
  static constexpr const char* factors = "iJ->i";
};
template <>
struct cleave::sharding_rule<Broken<3>> {
  static constexpr const char* factors = "ij->i";
  static constexpr const char* replicated = "k";
};
template <>
struct cleave::sharding_rule<Broken<4>> {
  static constexpr const char* factors = "ij,j->i";
  static constexpr const char* partials = "sum->sum";
};
template <>
struct cleave::sharding_rule<Broken<5>> {
  static constexpr const char* factors = "ij,j->i";
  static constexpr const char* partials = "sum,R->R";
};
template <>
struct cleave::sharding_rule<Broken<6>> {
  static constexpr const char* factors = "ij,j->i";
  static constexpr const char* partials = "sum,S0->sum";
};
template <>
struct cleave::sharding_rule<Broken<7>> {
  static constexpr const char* factors = "ij,j->i";
  static constexpr const char* partials = "sum,R,R->sum";
};

TEST_CASE("a rule's texts become factors, dimensions and rows") {
  constexpr Rule rule = rule_of<Product3>;
  CHECK(rule.operands == 2);
  CHECK(rule.factors == 4);
  CHECK(rule.letter[0] == 'b');
  CHECK(rule.operand[0].dims == 3);
  CHECK(rule.operand[1].dim_of(2) == 1);   // k
  CHECK(rule.operand[1].dim_of(1) == -1);  // i
  CHECK(rule.result[0].dim_of(3) == 2);    // j
  CHECK(rule.replicated == 1u);
  CHECK(rule.reduction == ReduceOp::max);
  REQUIRE(rule.rows == 2);
  CHECK(rule.row[1].operand[0] == Rule::replicate);
  CHECK(rule.row[1].operand[1] == int(ReduceOp::sum));
  CHECK(rule.row[1].result[0] == int(ReduceOp::sum));
  CHECK(to_string(rule) == "bik,bkj->bij");
}

TEST_CASE("a scalar operand has no letters") {
  CHECK(rule_of<Scaled>.operands == 2);
  CHECK(rule_of<Scaled>.operand[1].dims == 0);
  CHECK(to_string(rule_of<Scaled>) == "ij,->ij");
}

TEST_CASE("spaces do not matter") {
  CHECK(to_string(rule_of<Spaced>) == "ij,jk->ik");
  REQUIRE(rule_of<Spaced>.rows == 2);
  CHECK(rule_of<Spaced>.row[0].operand[0] == int(ReduceOp::avg));
  CHECK(rule_of<Spaced>.row[1].result[0] == int(ReduceOp::min));
}

TEST_CASE("invalid texts are errors") {
  using Fault = Rule::Fault;
  CHECK(detail::read_rule<Broken<0>>().fault == Fault::factors);
  CHECK(detail::read_rule<Broken<1>>().fault == Fault::factors);
  CHECK(detail::read_rule<Broken<2>>().fault == Fault::factors);
  CHECK(detail::read_rule<Broken<3>>().fault == Fault::replicated);
  CHECK(detail::read_rule<Broken<4>>().fault == Fault::partials);
  CHECK(detail::read_rule<Broken<5>>().fault == Fault::partials);
  CHECK(detail::read_rule<Broken<6>>().fault == Fault::partials);
  CHECK(detail::read_rule<Broken<7>>().fault == Fault::partials);
}
