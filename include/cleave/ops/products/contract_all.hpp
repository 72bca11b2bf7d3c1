// The product of several arrays in Einstein notation, by the plan with the fewest bytes received.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/checksum.hpp>
#include <cleave/dtensor/redistribution_spec.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/engine/call_context.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/products/contract_pair.hpp>
#include <cleave/ops/products/contraction_plan.hpp>
#include <cleave/ops/products/contraction_run.hpp>
#include <cleave/ops/products/einsum_text.hpp>
#include <cleave/redistribute/keyed_cache.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/rules/solver.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The rule of a product of any number of arrays: linear in each of them.
template <class Text>
inline constexpr Rule contraction_rule = [] {
  Rule rule;
  read_factors(rule, Text::text);
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg})
    for (int i = 0; i < rule.operands; ++i) {
      Rule::Row& row = rule.row[std::size_t(rule.rows++)];
      row.operand.fill(Rule::replicate);
      row.operand[std::size_t(i)] = row.result[0] = std::int8_t(op);
    }
  return rule;
}();

/// What the checks of a call read of an operation.
template <class Text>
inline constexpr ExtentsTable contraction_table{contraction_rule<Text>};
template <class Text>
inline constexpr OpInfo contraction_info{"einsum", &contraction_rule<Text>,
                                         &contraction_table<Text>};

/// "ab,bc,cd->ad" as "ab,bc->ac", then "ac,cd->ad": the first two are multiplied, keeping the
/// letters that are still needed.
template <class Text>
struct EinsumInTurn {
  static constexpr RuleText joined = [] {
    RuleText letters;
    for (int i = 0; i < 2; ++i)
      for (const char c : std::string_view(Text::parts.operand[std::size_t(i)]))
        if (!EinsumText::has(letters, c) &&
            (EinsumText::has(Text::parts.result, c) || Text::parts.somewhere(c, 2)))
          letters += c;
    return letters;
  }();
  struct First {
    static constexpr RuleText text =
        factors_text(Text::parts.operand[0], Text::parts.operand[1], joined);
  };
  static constexpr RuleText text = [] {
    RuleText rest = EinsumInTurn::joined;
    for (int i = 2; i < Text::parts.operands; ++i) {
      rest += ',';
      rest += Text::parts.operand[std::size_t(i)];
    }
    rest += "->";
    rest += Text::parts.result;
    return rest;
  }();

  template <class Asked, class X, class W, class... Rest>
  static constexpr auto call(const Asked& request, const X& x, const W& w, const Rest&... rest) {
    if constexpr (sizeof...(Rest) == 0) {
      return call_as(request, ops::Contract<Text>{}, x, w);
    } else {
      using Explicit =
          std::conditional_t<Asked::is_explicit, Request<explicit_communication>, Request<>>;
      const auto first = call_as(Explicit{}, ops::Contract<decltype(einsum_of<First>())>{}, x, w);
      return EinsumInTurn<decltype(einsum_of<EinsumInTurn>())>::call(request, first, rest...);
    }
  }
};

/// The placements of a result: those requested, else those that the rule of the whole product gives
/// for the operands' placements, whatever the order of the products.
template <class Text, class Asked, class Mesh, class... X>
struct ContractionResult {
  static constexpr int dims = int(Text::parts.result.size);
  static constexpr Layout layout = [] {
    if constexpr (std::is_same_v<Asked, Unasked>) {
      return solve(contraction_rule<Text>, OperandLayouts{X::layout...}).result[0];
    } else {
      static_assert(Asked::size == Mesh::axis_count,
                    "cleave: a requested result has exactly one placement per mesh axis");
      constexpr Layout asked = layout_of<Asked, dims>;
      static_assert(!asked.has_partial(), "cleave: a result cannot be requested as Partial");
      return asked;
    }
  }();
};

/// Everything that a plan depends on, as numbers.
struct ContractionKey {
  std::vector<std::uint64_t> words{};

  explicit ContractionKey(const ContractionCall& call) {
    const auto add = [&](const auto& numbers) {
      for (const auto n : numbers) words.push_back(std::uint64_t(n));
    };
    for (int i = 0; i < call.rule->operands; ++i) add(call.operands[std::size_t(i)].codes());
    add(call.result.codes());
    for (int f = 0; f < call.rule->factors; ++f) words.push_back(std::uint64_t(call.extents[f]));
    add(call.mesh);
    add(std::array{call.element_size, std::size_t(call.memory_limit)});
    add(std::array{call.model.latency_us, call.model.bytes_per_us, call.model.network_latency_us,
                   call.model.network_bytes_per_us, double(call.model.ranks_per_node)});
  }
  friend bool operator==(const ContractionKey&, const ContractionKey&) = default;
  std::uint64_t checksum() const { return cleave::detail::checksum(words); }
};

/// The plan of a call. Kept by each rank's thread, for the last 64 calls that differ.
template <class Text>
const ContractionPlan& contraction_plan(const ContractionCall& call, const ErrorContext& context) {
  static thread_local redistribution::KeyedCache<ContractionKey, ContractionPlan, 64> plans;
  const ContractionKey key(call);
  if (const ContractionPlan* known = plans.find(key)) return *known;
  return plans.add(key, plan_contractions(call, context));
}

/// @param mesh  null: local tensors
template <class Text>
ContractionCall contraction_call(const FactorExtents& extents, const MeshState* mesh,
                                 const OperandLayouts& operands, const Layout& result, DType dtype,
                                 index_t memory_limit) {
  ContractionCall call{&contraction_rule<Text>, operands, result, extents};
  if (mesh != nullptr) {
    call.mesh = mesh->extents();
    call.model = cost_model(mesh->group());
  }
  call.element_size = size_of(dtype);
  call.memory_limit = memory_limit;
  return call;
}

/// The extents of all factors. @pre they agree
inline FactorExtents factor_extents(const CallContext& call) {
  std::array<ExtentsRef, std::size_t(max_operands)> shapes;
  for (int i = 0; i < call.info.rule->operands; ++i)
    shapes[std::size_t(i)] = {call.operands[i].shape, call.operands[i].dims};
  FactorExtents extents;
  read_extents(*call.info.rule, false, shapes.data(), {}, extents);
  return extents;
}

}  // namespace detail

namespace ops {

/// A product of two or more arrays, in which each letter occurs in at least two of the operands and
/// the result. Its gradients are such products, too, each with a plan of its own.
///
///     // y[S0,S1] = contract(x[S0,R], v[R,S0], w[R,S1])    ab,bc,cd->ad
template <class Text>
struct ContractAll : Composite {
  static constexpr const char* name = "einsum";
  static constexpr bool takes_request = true;
  fewest_bytes limits{};

  template <class Asked, class... X>
  constexpr auto body(const Asked& request, const X&... x) const {
    using First = cleave::detail::first_tensor_t<X...>;
    static_assert((is_tensor<X> && ...) || (!is_tensor<X> && ...),
                  "cleave: an operation mixes a Tensor with DTensors; place the Tensor first "
                  "(distribute_tensor, from_local)");
    static_assert(
        (cleave::detail::on_mesh<typename cleave::detail::MeshOf<X...>::type, X>() && ...),
        "cleave: the operands of an operation are on meshes of different types");
    if constexpr (is_tensor<First>) {
      return run_local(x...);
    } else if constexpr (is_dtensor<First>) {
      using AskedList = typename cleave::detail::AskedBy<Asked, First::mesh_type::axis_count>::type;
      if constexpr (Asked::is_explicit || (cleave::detail::has_open_layout<X> || ...) ||
                    cleave::detail::is_open_list<AskedList>)
        return cleave::detail::EinsumInTurn<Text>::call(request, x...);
      else return run_placed<AskedList>(x...);
    } else {
      return cleave::detail::EinsumInTurn<Text>::call(request, x...);
    }
  }

  template <int I, class... X>
  constexpr auto gradient(wrt<I>, const auto& g, const auto&, const X&... x) const {
    const auto all = std::tie(x...);
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      const auto factor = [&]<std::size_t J>(std::integral_constant<std::size_t, J>) {
        if constexpr (J == std::size_t(I)) return g;
        else return conj(std::get<J>(all));
      };
      return call_op(ContractAll<decltype(cleave::detail::einsum_of<Gradient<I>>())>{{}, limits},
                     factor(std::integral_constant<std::size_t, K>{})...);
    }(std::index_sequence_for<X...>{});
  }

  /// The plan of a call.
  /// @throws Error as the call
  template <class AskedList, class... X>
  static auto explain(const fewest_bytes& limits, const X&... x) {
    using First = cleave::detail::first_tensor_t<X...>;
    const std::array in{cleave::detail::operand_of(x)...};
    const cleave::detail::CallContext call(cleave::detail::contraction_info<Text>, in.data());
    Layout result;
    if constexpr (is_dtensor<First>)
      result = cleave::detail::ContractionResult<Text, AskedList, typename First::mesh_type,
                                                 X...>::layout;
    return plan_of(limits, call, result);
  }

 private:
  template <int I>
  struct Gradient {
    static constexpr RuleText text = [] {
      RuleText letters;
      for (int i = 0; i < Text::parts.operands; ++i) {
        if (i > 0) letters += ',';
        letters += i == I ? Text::parts.result : Text::parts.operand[std::size_t(i)];
      }
      letters += "->";
      letters += Text::parts.operand[std::size_t(I)];
      return letters;
    }();
  };

  static const ContractionPlan& plan_of(const fewest_bytes& limits,
                                        const cleave::detail::CallContext& call,
                                        const Layout& result) {
    OperandLayouts operands{};
    for (int i = 0; i < Text::parts.operands; ++i)
      if (call.operands[i].layout != nullptr) operands[std::size_t(i)] = *call.operands[i].layout;
    return cleave::detail::contraction_plan<Text>(
        cleave::detail::contraction_call<Text>(cleave::detail::factor_extents(call), call.mesh,
                                               operands, result, call.operands[0].dtype,
                                               limits.memory_limit),
        call.context());
  }

  template <class X, class... More>
  auto run_local(const X& x, const More&... more) const {
    using T = typename X::value_type;
    using Device = typename X::device_type;
    const std::array in{cleave::detail::operand_of(x), cleave::detail::operand_of(more)...};
    const cleave::detail::CallContext call(cleave::detail::contraction_info<Text>, in.data());
    return cleave::detail::tensor_of<Tensor<T, int(Text::parts.result.size), Device>>(
        cleave::detail::ContractionRun<T, Device>(nullptr, in.data(), int(in.size()))
            .result(plan_of(limits, call, Layout{})));
  }

  template <class AskedList, class X, class... More>
  auto run_placed(const X& x, const More&... more) const {
    using T = typename X::value_type;
    using Mesh = typename X::mesh_type;
    using Device = typename Mesh::device_type;
    using Placed = cleave::detail::ContractionResult<Text, AskedList, Mesh, X, More...>;
    using Y = DTensor<T, Placed::dims, Mesh, placements_t<Placed>>;
    const std::array in{cleave::detail::operand_of(x), cleave::detail::operand_of(more)...};
    const cleave::detail::CallContext call(cleave::detail::contraction_info<Text>, in.data());
    const auto mesh = x.mesh();
    if (!mesh.is_member()) {
      const std::array<index_t, std::size_t(Y::dims)> none{};
      return Y::unchecked(typename Y::local_type(none), mesh, none);
    }
    const ContractionPlan& plan = plan_of(limits, call, Placed::layout);
    return Y::unchecked(
        cleave::detail::tensor_of<typename Y::local_type>(
            cleave::detail::ContractionRun<T, Device>(call.mesh, in.data(), int(in.size()))
                .result(plan)),
        mesh, to_array<Y::dims>(plan.steps.back().shape.begin()));
  }
};

}  // namespace ops

}  // namespace cleave::inline v0
