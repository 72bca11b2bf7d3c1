// The sharding rule of an operation: all that the library knows about it, as data.
//
// A rule names the op's factors, as an einsum does, and says in which operands the op commutes
// with a pending reduction. The solver derives placements from any rule.
//
//     struct Matmul {};
//     template <>
//     struct cleave::sharding_rule<Matmul> {
//       static constexpr const char* factors = "ik,kj->ij";
//       static constexpr const char* partials = "sum,R->sum; R,sum->sum; avg,R->avg; R,avg->avg";
//     };
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <cleave/core/config.hpp>
#include <cleave/core/reduce_op.hpp>

namespace cleave::inline v0 {

/// The rule of an operation: by default the members of the operation itself; specialise it to
/// define the rule separately. Members, all `static constexpr`:
///
/// - `factors` (required): one letter per dimension of each operand and of each result,
///   "ik,kj->ij" or "ab->a,a". Dimensions with the same letter are sharded together. A factor that
///   a result lacks is reduced over; one that only results have is new (its extent is an argument
///   of the op). A scalar operand has no letters. Letters in parentheses are one dimension, whose
///   indices count through these factors, the last one fastest: "abc->(ab)c" merges two dimensions.
///   The first factor of such a group may stay sharded; the others must not be sharded, unless the
///   first one reads them.
/// - `reads`: pairs of letters, "be": an index of the result's dimension e reads some indices of
///   the operands' dimension b, whose shards may be kept: the ranks then receive what they lack.
///   Both may be one letter; e may be the first one of a group, and b another one of it. The
///   operation says which indices. @see DimMap, Regrouping
/// - `reduction`: the ReduceOp of the factors that are reduced over; default `ReduceOp::sum`.
/// - `replicated`: the factors that must not be sharded, "k"; default none.
/// - `partials`: rows that say which partial results partial operands give, "sum,R->sum": if the
///   first operand is a sum over the ranks and the second is replicated, the result is a sum, too.
///   Reductions are sum, avg, max, min and product; rows are separated by ';', the entries of
///   several results by ','; default none.
///   A row must be true: a wrong one gives wrong results.
/// - `needs_box`: whether the kernel needs the global indices of what it computes, as a box;
/// default
///   false. Operands that are cut block-cyclically are then redistributed.
/// - `broadcasts`: operands may have extent 1 where others have more; default false. A kernel that
///   is not an elementwise functor receives them unexpanded.
template <class Op>
struct sharding_rule : Op {};

/// The most operands that a rule may have.
inline constexpr int max_operands = 8;

/// The most results that a rule may have.
inline constexpr int max_results = 3;

/// The text of factors that are generated, e.g. from numbers of dimensions.
struct RuleText {
  std::array<char, 96> text{};
  std::size_t size = 0;

  constexpr RuleText& operator+=(char c) {
    text[size++] = c;
    return *this;
  }
  constexpr RuleText& operator+=(std::string_view more) {
    for (const char c : more) *this += c;
    return *this;
  }
  constexpr operator std::string_view() const { return {text.data(), size}; }
};

namespace detail {

/// The letters of all parts, in order.
constexpr RuleText joined(const auto&... parts) {
  RuleText text;
  ((text += parts), ...);
  return text;
}

/// "cde": the letters of dimensions [first, end) without those of the mask.
constexpr RuleText dim_letters(int first, int end, unsigned without = 0) {
  RuleText text;
  for (int d = first; d < end; ++d)
    if (!(without >> d & 1u)) text += char('a' + d);
  return text;
}

/// "operand->result".
constexpr RuleText factors_text(std::string_view operand, std::string_view result) {
  return joined(operand, "->", result);
}
/// "left,right->result".
constexpr RuleText factors_text(std::string_view left, std::string_view right,
                                std::string_view result) {
  return joined(left, ',', right, "->", result);
}

}  // namespace detail

/// A parsed rule.
struct Rule {
  static constexpr int max_rows = 16;
  static constexpr int max_factors = 26;
  static constexpr std::int8_t replicate = -1;  ///< in a row; other entries are ReduceOps

  struct Operand {
    int dims = 0;
    std::array<std::int8_t, max_dims> factor{};   ///< of each dimension; of a group, the first
    std::array<std::uint32_t, max_dims> inner{};  ///< bit f: factor f is another one of its group

    constexpr bool is_group(int d) const { return inner[std::size_t(d)] != 0; }
    /// The dimension whose first factor is f, or -1.
    constexpr int dim_of(int f) const {
      for (int d = 0; d < dims; ++d)
        if (factor[std::size_t(d)] == f) return d;
      return -1;
    }
  };
  struct Row {
    std::array<std::int8_t, max_operands> operand{};
    std::array<std::int8_t, max_results> result{};
  };

  int operands = 0;
  int results = 0;
  int factors = 0;
  int rows = 0;
  std::array<Operand, max_operands> operand{};
  std::array<Operand, max_results> result{};
  std::array<char, max_factors> letter{};  ///< of each factor
  std::uint32_t replicated = 0;            ///< bit f: factor f must not be sharded
  std::uint32_t kept = 0;  ///< bit f: factor f, the first of a group, may stay sharded; no operand
                           ///< is newly sharded along it, as the shards might end within the group
  /// The factor of results whose indices read those of factor f, or -1.
  std::array<std::int8_t, max_factors> reader = [] {
    std::array<std::int8_t, max_factors> none{};
    for (std::int8_t& f : none) f = -1;
    return none;
  }();
  ReduceOp reduction = ReduceOp::sum;
  bool needs_box = false;  ///< the indices of a rank's part must be a range in every dimension
  std::array<Row, max_rows> row{};

  /// Which text is malformed, if any.
  enum class Fault : std::uint8_t { none, factors, replicated, reads, partials };
  Fault fault = Fault::none;
};

namespace detail {

constexpr std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Where `mark` begins in the text, or npos. (std::string_view::find is not a constant expression
/// with g++ -fsanitize=undefined.)
constexpr std::size_t find(std::string_view text, std::string_view mark) {
  for (std::size_t at = 0; at + mark.size() <= text.size(); ++at)
    if (text.substr(at, mark.size()) == mark) return at;
  return text.npos;
}

/// Removes the part before the first `mark`, and the mark, from the text. @return the part, trimmed
constexpr std::string_view take_until(std::string_view& text, std::string_view mark) {
  const std::size_t at = find(text, mark);
  const std::string_view head = text.substr(0, at);
  text = at == text.npos ? std::string_view{} : text.substr(at + mark.size());
  return trimmed(head);
}

constexpr int factor_index(const Rule& rule, char letter) {
  for (int f = 0; f < rule.factors; ++f)
    if (rule.letter[std::size_t(f)] == letter) return f;
  return -1;
}

/// Reads the letters of one operand. @return false if they are malformed
constexpr bool read_dims(Rule& rule, std::string_view letters, Rule::Operand& operand) {
  std::uint32_t seen = 0;
  int inside = -1;  // letters of the current group so far; -1 outside of a group
  for (const char letter : letters) {
    if (letter == '(' || letter == ')') {
      if ((letter == '(') != (inside < 0) || inside == 0) return false;
      inside = letter == '(' ? 0 : -1;
      continue;
    }
    if (letter < 'a' || letter > 'z') return false;
    int f = factor_index(rule, letter);
    if (f < 0) rule.letter[std::size_t(f = rule.factors++)] = letter;
    if (seen >> f & 1u) return false;
    seen |= 1u << f;
    if (inside > 0) {
      operand.inner[std::size_t(operand.dims - 1)] |= 1u << f;
      rule.replicated |= 1u << f;
      rule.kept |= 1u << operand.factor[std::size_t(operand.dims - 1)];
    } else {
      if (operand.dims == max_dims) return false;
      operand.factor[std::size_t(operand.dims++)] = std::int8_t(f);
    }
    if (inside >= 0) ++inside;
  }
  return inside < 0;
}

/// Reads "ik,kj": the letters of several operands. @return false if malformed or too many
template <std::size_t Most>
constexpr bool read_list(Rule& rule, std::string_view text,
                         std::array<Rule::Operand, Most>& operands, int& count) {
  for (bool more = true; more;) {
    more = find(text, ",") != text.npos;
    if (count == int(Most)) return false;
    const std::string_view letters = take_until(text, ",");
    if (!read_dims(rule, letters, operands[std::size_t(count++)])) return false;
  }
  return true;
}

constexpr bool read_factors(Rule& rule, std::string_view text) {
  const std::size_t arrow = find(text, "->");
  if (arrow == text.npos) return false;
  return read_list(rule, text.substr(0, arrow), rule.operand, rule.operands) &&
         read_list(rule, text.substr(arrow + 2), rule.result, rule.results);
}

/// Reads "R" or a reduction. @return false if it is neither
constexpr bool read_entry(std::string_view text, std::int8_t& entry) {
  entry = Rule::replicate;
  if (text == "R") return true;
  for (int op = 0; op <= int(ReduceOp::product); ++op)
    if (text == name_of(ReduceOp(op))) entry = std::int8_t(op);
  return entry != Rule::replicate;
}

constexpr bool read_rows(Rule& rule, std::string_view text) {
  while (!trimmed(text).empty()) {
    if (rule.rows == Rule::max_rows) return false;
    Rule::Row& row = rule.row[std::size_t(rule.rows++)];
    std::string_view right = take_until(text, ";");
    std::string_view left = take_until(right, "->");
    for (int i = 0; i < rule.operands; ++i)
      if (!read_entry(take_until(left, ","), row.operand[std::size_t(i)])) return false;
    if (!left.empty()) return false;
    for (int k = 0; k < rule.results; ++k) {
      std::int8_t& entry = row.result[std::size_t(k)];
      if (!read_entry(take_until(right, ","), entry) || entry == Rule::replicate) return false;
    }
    if (!right.empty()) return false;
  }
  return true;
}

template <class Op>
constexpr Rule read_rule() {
  using Data = sharding_rule<Op>;
  Rule rule;
  if (!read_factors(rule, Data::factors)) {
    rule.fault = Rule::Fault::factors;
    return rule;
  }
  if constexpr (requires { Data::reduction; }) rule.reduction = Data::reduction;
  if constexpr (requires { Data::replicated; }) {
    for (const char letter : std::string_view(Data::replicated)) {
      const int f = factor_index(rule, letter);
      if (f < 0) rule.fault = Rule::Fault::replicated;
      else rule.replicated |= 1u << f;
    }
  }
  if constexpr (requires { Data::reads; }) {
    const std::string_view pairs = Data::reads;
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
      const int f = factor_index(rule, pairs[i]);
      const int g = i + 1 < pairs.size() ? factor_index(rule, pairs[i + 1]) : -1;
      if (f < 0 || g < 0) rule.fault = Rule::Fault::reads;
      else rule.reader[std::size_t(f)] = std::int8_t(g), rule.replicated &= ~(1u << f);
    }
  }
  if constexpr (requires { Data::needs_box; }) rule.needs_box = Data::needs_box;
  rule.needs_box = rule.needs_box || rule.kept != 0;
  for (const std::int8_t reader : rule.reader) rule.needs_box = rule.needs_box || reader >= 0;
  if constexpr (requires { Data::partials; }) {
    if (!read_rows(rule, Data::partials)) rule.fault = Rule::Fault::partials;
  }
  return rule;
}

template <class Op>
constexpr bool rule_broadcasts() {
  if constexpr (requires { sharding_rule<Op>::broadcasts; }) return sharding_rule<Op>::broadcasts;
  else return false;
}

template <class Op>
constexpr Rule checked_rule() {
  constexpr Rule rule = read_rule<Op>();
  static_assert(rule.fault != Rule::Fault::factors,
                "cleave: the factors of a sharding_rule read like \"ik,kj->ij\": a lower-case "
                "letter per dimension, or several in parentheses, none twice in one operand");
  static_assert(rule.fault != Rule::Fault::replicated,
                "cleave: a sharding_rule replicates a factor that it does not have");
  static_assert(rule.fault != Rule::Fault::reads,
                "cleave: the reads of a sharding_rule are pairs of letters of its factors: one of "
                "operands, and one of results");
  static_assert(rule.fault != Rule::Fault::partials,
                "cleave: the partials of a sharding_rule read like \"sum,R->sum; R,max->max\": "
                "an entry per operand, and a reduction for each result");
  return rule;
}

}  // namespace detail

/// The rule of Op as a value.
template <class Op>
inline constexpr Rule rule_of = detail::checked_rule<Op>();

}  // namespace cleave::inline v0
