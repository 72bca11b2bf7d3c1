// The record of one call of an operation: saves the values that the gradients of its operands need,
// which tracing those gradients determines, and passes the gradients to the operands.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/grad/results.hpp>
#include <cleave/grad/segment.hpp>
#include <cleave/grad/value.hpp>
#include <cleave/spmd/traced.hpp>

namespace cleave::inline v0::tape {

/// Whether an operation has a gradient with respect to operand I.
template <int I, class Op, class Y, class... X>
inline constexpr bool has_gradient = requires(const Op& op, const gradient_t<Y>& g, const Y& y,
                                              const X&... x) { op.gradient(wrt<I>{}, g, y, x...); };

/// The type that replaces the type of a value while a gradient is traced.
template <class X>
struct TracedAs {
  using type = Traced<typename X::value_type, X::dims, typename X::device_type>;
};
template <ScalarElement T>
struct TracedAs<T> {
  using type = Traced<T, 0>;
};
template <class... X>
struct TracedAs<std::tuple<X...>> {
  using type = std::tuple<typename TracedAs<X>::type...>;
};
template <class X>
using traced_as = typename TracedAs<X>::type;

/// New values of a graph: a Traced, or a tuple of them.
template <class X>
constexpr X fresh_values(spmd::Graph& graph) {
  if constexpr (is_tuple<X>) {
    return [&]<class... A>(const std::tuple<A...>*) {
      return std::tuple<A...>{fresh_values<A>(graph)...};
    }(static_cast<const X*>(nullptr));
  } else {
    return X(graph,
             graph.add({-1, 0, -1, dtype_of<typename X::value_type>(), Shape::filled(X::dims, 2)}));
  }
}

/// The values that the gradient with respect to operand I reads: bit 0 for the results, bit i + 1
/// for operand i. Found by tracing the gradient, once per element types and numbers of dimensions.
template <class Op, int I, class Y, class... X>
constexpr unsigned reads() {
  if constexpr (requires { Op::gradient_reads; }) {
    return Op::gradient_reads;
  } else if constexpr (!std::is_default_constructible_v<Op>) {
    return ~0u;
  } else {
    spmd::Graph graph;
    const Y y = fresh_values<Y>(graph);
    const std::size_t results = graph.values.size();
    const auto x = fresh_values<std::tuple<X...>>(graph);
    const Y g = fresh_values<Y>(graph);
    const int result = std::apply(
        [&](const auto&... v) { return Op{}.gradient(wrt<I>{}, g, y, v...).value(); }, x);
    std::vector<char> read(graph.values.size(), 0);
    read[std::size_t(result)] = 1;
    for (std::size_t n = graph.nodes.size(); n-- > 0;) {
      const spmd::Node& node = graph.nodes[n];
      bool is_needed = false;
      for (int k = 0; k < node.results(); ++k)
        is_needed = is_needed || read[std::size_t(node.first + k)];
      for (int k = 0; is_needed && k < node.operands(); ++k)
        read[std::size_t(node.operand[std::size_t(k)])] = 1;
    }
    unsigned mask = 0;
    for (std::size_t v = 0; v < results; ++v) mask |= unsigned(read[v]);
    for (std::size_t i = 0; i < sizeof...(X); ++i) mask |= unsigned(read[results + i]) << (i + 1);
    return mask;
  }
}
template <class Op, int I, class Y, class... X>
inline constexpr unsigned reads_of = reads<Op, I, Y, X...>();

/// Replaces an operand that a record need not save.
struct Nothing {};

/// One call of an operation with a gradient.
///
/// @tparam Y  the type of the result; a std::tuple for several results
/// @tparam X  the types of the operands as passed
template <class Op, class Y, class... X>
class Record : public Slot<Y> {
  static constexpr int count = int(sizeof...(X));
  using Sequence = std::make_integer_sequence<int, count>;
  template <int I>
  using Given = std::tuple_element_t<std::size_t(I), std::tuple<X...>>;
  template <int I>
  using Plain = untracked_t<Given<I>>;

 public:
  constexpr Record(const Op& op, const Y& y, const X&... x)
      : Slot<Y>(&functions, hollow(y)), op_(op), inputs_{Ref<RecordBase>(slot_of(x))...} {
    this->operands = inputs_.data();
    this->operand_count = count;
    for (const auto& input : inputs_)
      if (input) versions_ += input->version;
    announce(Sequence{});
    changes_ = changes_of_kept(Sequence{}, y, x...);
    if (std::is_constant_evaluated()) save(saved_, Sequence{}, y, x...);
    else save_or_enlist(y, x...);
  }

  constexpr ~Record() { delete enlistment_; }

 private:
  void save_or_enlist(const Y& y, const X&... x) {
    const std::shared_ptr<Segment>& segment = Segment::current();
    if (segment == nullptr) {
      save(saved_, Sequence{}, y, x...);
    } else if (!segment->again) {
      enlistment_ = new Enlistment(segment, this);
    } else if (auto* const first = static_cast<Record*>(segment->counterpart(&functions))) {
      save(first->saved_, Sequence{}, y, x...);
    }
  }

  /// Whether the gradient with respect to operand I is required.
  template <int I>
  static constexpr bool is_wanted = [] {
    if constexpr (!is_tracked<Given<I>>) return false;
    else return has_gradient<I, Op, Y, untracked_t<X>...>;
  }();
  /// The values that the gradient with respect to operand I reads.
  template <int I>
  static constexpr unsigned reads_for() {
    if constexpr (!is_wanted<I>) return 0;
    else return reads_of<Op, I, traced_as<Y>, traced_as<untracked_t<X>>...>;
  }
  /// The values that any gradient reads.
  static constexpr unsigned kept = []<int... I>(std::integer_sequence<int, I...>) {
    return (0u | ... | reads_for<I>());
  }(Sequence{});
  template <int I>
  static constexpr bool is_kept = (kept >> (I + 1) & 1u) != 0;
  /// If gradients read only the extents of an operand, and its slot knows them, nothing is saved.
  template <int I>
  using Kept = std::conditional_t<!is_kept<I> && is_tracked<Given<I>>, Nothing, Plain<I>>;

  template <class Indices>
  struct SavedValues;
  template <int... I>
  struct SavedValues<std::integer_sequence<int, I...>> {
    std::conditional_t<(kept & 1u) != 0, Y, Nothing> y;
    std::tuple<Kept<I>...> x;
  };
  using Saved = SavedValues<Sequence>;

  template <class A>
  static constexpr RecordBase* slot_of(const A& a) {
    if constexpr (is_tracked<A>) return a.slot();
    else return nullptr;
  }
  template <int I>
  constexpr Slot<Plain<I>>* slot_at() const {
    return static_cast<Slot<Plain<I>>*>(inputs_[std::size_t(I)].get());
  }
  /// Whether operand I is remade in backward instead of being saved.
  template <int I>
  constexpr bool makes_again() const {
    if constexpr (!is_tracked<Given<I>>) return false;
    else return inputs_[std::size_t(I)] && slot_at<I>()->again != nullptr;
  }

  /// Tells operands that can be remade how often backward will remake them.
  template <int... I>
  constexpr void announce(std::integer_sequence<int, I...>) {
    if constexpr (cleave::detail::is_view_op<Op> && count == 1) {
      offer_again();
    } else {
      const auto tell = [&]<int K>(std::integral_constant<int, K>) {
        if constexpr (is_kept<K> && is_tracked<Given<K>>)
          if (inputs_[std::size_t(K)] && slot_at<K>()->uses != nullptr)
            *slot_at<K>()->uses += uses_of<K>(Sequence{});
      };
      (tell(std::integral_constant<int, I>{}), ...);
    }
  }
  /// How often the gradients of this record will read operand K.
  template <int K, int... I>
  constexpr int uses_of(std::integer_sequence<int, I...>) const {
    if constexpr (gives_all)
      if (wants_all()) return 1;
    return (0 + ... + int((reads_for<I>() >> (K + 1) & 1u) != 0 && inputs_[std::size_t(I)]));
  }
  /// A view of an operand that is remade is itself remade.
  constexpr void offer_again() {
    if constexpr (is_dtensor<Y> && is_dtensor<Plain<0>>) {
      if (!makes_again<0>()) return;
      if constexpr (std::is_same_v<Y, decltype(cleave::detail::call_as(
                                          cleave::detail::Request<>{}, op_,
                                          std::declval<const Plain<0>&>()))>) {
        this->uses = slot_at<0>()->uses;
        this->again = [](Slot<Y>* slot) {
          auto* const record = static_cast<Record*>(slot);
          auto* const source = record->template slot_at<0>();
          return cleave::detail::call_as(cleave::detail::Request<>{}, record->op_,
                                         source->again(source));
        };
      }
    }
  }

  template <int... I>
  constexpr void save(std::optional<Saved>& to, std::integer_sequence<int, I...>, const Y& y,
                      const X&... x) const {
    to.emplace(Saved{kept_result(y), {kept_operand<I>(x)...}});
  }
  static constexpr auto kept_result(const Y& y) {
    if constexpr (kept & 1u) return y;
    else return Nothing{};
  }
  template <int I>
  constexpr Kept<I> kept_operand(const Given<I>& x) const {
    if constexpr (std::is_same_v<Kept<I>, Nothing>) return {};
    else if constexpr (!is_kept<I>) return hollow(value_of(x));
    else if constexpr (is_tracked<Given<I>>)
      return makes_again<I>() ? hollow(value_of(x)) : value_of(x);
    else return x;
  }

  /// The number of in-place changes to the elements that gradients read; those of remade operands
  /// do not count.
  template <int... I>
  constexpr unsigned changes_of_kept(std::integer_sequence<int, I...>, const Y& y,
                                     const X&... x) const {
    return (((kept & 1u) != 0 ? changes_of(y) : 0u) + ... +
            (is_kept<I> && !makes_again<I>() ? changes_of(x) : 0u));
  }
  unsigned changes_of_saved() const {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return (changes_of(saved_->y) + ... + changes_of(std::get<std::size_t(I)>(saved_->x)));
    }(Sequence{});
  }

  /// The result as passed to gradients.
  constexpr const Y& result() const {
    if constexpr (kept & 1u) return saved_->y;
    else return this->like;
  }
  /// Operand K as passed to a gradient that reads the values in `Reads`: remade only if it is read.
  template <unsigned Reads, int K>
  constexpr decltype(auto) operand() const {
    if constexpr (std::is_same_v<Kept<K>, Nothing>) {
      return (slot_at<K>()->like);
    } else if constexpr (is_tracked<Given<K>> && (Reads >> (K + 1) & 1u)) {
      if (makes_again<K>()) return Plain<K>(slot_at<K>()->again(slot_at<K>()));
      return Plain<K>(std::get<std::size_t(K)>(saved_->x));
    } else {
      return (std::get<std::size_t(K)>(saved_->x));
    }
  }

  /// Whether the result is the operand under other placements. If so, contributions are passed on
  /// under the placements with which they arrived and redistributed once: the partial gradient of a
  /// gathered value is reduce-scattered, not all-reduced.
  static constexpr bool changes_placements = [] {
    if constexpr (std::is_same_v<Op, ops::Redistribute>)
      return is_tracked<Given<0>> && ((is_dtensor<Y> && is_dtensor<Plain<0>>) ||
                                      (cleave::detail::is_traced<Y> && !is_tracked<Plain<0>>));
    else return false;
  }();

  constexpr void pass_gradients() {
    if (!std::is_constant_evaluated()) require_saved();
    if constexpr (changes_placements) {
      if (inputs_[0]) this->sum.pour_into(slot_at<0>()->sum);
      else this->sum.clear();
    } else {
      const gradient_t<Y> g = this->sum.settle(this->like);
      this->sum.clear();
      enter_module();
      if constexpr (gives_all) {
        if (wants_all()) return pass_all(g, Sequence{});
      }
      [&]<int... I>(std::integer_sequence<int, I...>) { (pass<I>(g), ...); }(Sequence{});
    }
  }

  /// Whether the operation computes the gradients of all operands in one call: not where gradients
  /// are differentiated themselves.
  static constexpr bool gives_all = [] {
    if constexpr (((is_tracked<X> && !is_tracked<untracked_t<X>>) && ...))
      return requires(const Op& op, const gradient_t<Y>& g, const Y& y,
                      const untracked_t<X>&... x) { op.gradients(g, y, x...); };
    else return false;
  }();
  constexpr bool wants_all() const {
    for (const auto& input : inputs_)
      if (!input) return false;
    return true;
  }
  template <int... I>
  constexpr void pass_all(const gradient_t<Y>& g, std::integer_sequence<int, I...>) {
    const auto gradients = op_.gradients(g, result(), operand<kept, I>()...);
    (slot_at<I>()->sum.add(std::get<std::size_t(I)>(gradients), slot_at<I>()->like), ...);
  }
  template <int I>
  constexpr void pass(const gradient_t<Y>& g) {
    if constexpr (is_wanted<I>) {
      if (!inputs_[std::size_t(I)]) return;
      Slot<Plain<I>>* const slot = slot_at<I>();
      slot->sum.add(
          [&]<int... K>(std::integer_sequence<int, K...>) {
            return op_.gradient(wrt<I>{}, g, result(), operand<reads_for<I>(), K>()...);
          }(Sequence{}),
          slot->like);
    }
  }

  /// What is communicated from here on counts as the module's that called the operation.
  constexpr void enter_module() const {
    if (!std::is_constant_evaluated()) cleave::detail::CommPlace::current().path = this->path;
  }

  void require_saved() {
    int versions = 0;
    for (const auto& input : inputs_)
      if (input) versions += input->version;
    if (versions != versions_) throw_changed();
    if (!saved_ && enlistment_ != nullptr && *enlistment_) enlistment_->call_again();
    if (!saved_)
      throw Error("backward",
                  "the tape has been freed by an earlier backward; evaluate the function again, or "
                  "call backward(loss, retain)");
    if (changes_of_saved() != changes_) throw_changed();
  }
  [[noreturn]] static void throw_changed() {
    throw Error("backward", std::string("an operand of ") + Op::name +
                                ", or its result, was changed in place after the operation had "
                                "used it");
  }

  constexpr void free_saved() {
    saved_.reset();
    delete enlistment_;
    enlistment_ = nullptr;
    for (auto& input : inputs_) input.reset();
  }

  static constexpr void destroy_record(RecordBase* r) { delete static_cast<Record*>(r); }
  static constexpr void run_record(RecordBase* r) {
    if (!static_cast<Record*>(r)->sum.empty()) static_cast<Record*>(r)->pass_gradients();
  }
  static constexpr void release_record(RecordBase* r) { static_cast<Record*>(r)->free_saved(); }
  static constexpr Table functions{&destroy_record, &run_record, &release_record, &Slot<Y>::forget};

  Op op_;
  std::array<Ref<RecordBase>, sizeof...(X)> inputs_;
  std::optional<Saved> saved_{};
  Enlistment* enlistment_ = nullptr;
  int versions_ = 0;      ///< sum of the operands' versions
  unsigned changes_ = 0;  ///< in-place changes to the elements that gradients read
};

}  // namespace cleave::inline v0::tape
