// Stencils in traced functions: one node for a call. The expansion keeps the placements of the
// first field, and the program exchanges and computes as the call on DTensors does.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/ops/engine/call_context.hpp>
#include <cleave/ops/engine/into.hpp>
#include <cleave/ops/stencil/apply.hpp>
#include <cleave/spmd/traced.hpp>
#include <cleave/spmd/traced_factories.hpp>

namespace cleave::inline v0::detail {

/// A rank's part of a field whose placements its type does not tell.
template <class T, int Rank, class Device>
struct FieldPart {
  using value_type = T;
  using device_type = Device;
  static constexpr int dims = Rank;

  Tensor<T, Rank, Device> local;
  Box own;  ///< the indices of its elements
  Shape extents;

  const Shape& shape() const { return extents; }
};
template <class T, int Rank, class Device>
const Box& own_box_of(const FieldPart<T, Rank, Device>& x) {
  return x.own;
}
template <class T, int Rank, class Device>
const Tensor<T, Rank, Device>& local_part(const FieldPart<T, Rank, Device>& x) {
  return x.local;
}

/// The part of an operand of a program.
template <class X>
struct PartOf {
  using Local = Tensor<typename X::value_type, X::dims, typename X::device_type>;
  using type = FieldPart<typename X::value_type, X::dims, typename X::device_type>;

  static type of(const OperandRef& x) {
    const Shape shape = shape_at(x.shape, x.dims);
    std::shared_ptr<void> storage = *x.storage;
    return {TensorAccess::make<Local>(std::move(storage), x.data, x.extents, x.strides),
            local_box(x.mesh, x.layout, shape), shape};
  }
};
template <class T>
struct PartOf<Number<T>> {
  using type = Number<T>;

  static type of(const OperandRef& x) { return {*static_cast<const T*>(x.data)}; }
};

/// A call of some steps of a stencil on operands X: Traced values and Numbers.
template <int Steps, class S, class E, class... X>
class TracedStencil {
  using Call = StencilCall<S, X...>;
  using Device = typename Call::Device;
  using Result = Tensor<typename Call::T, Call::dims, Device>;
  static constexpr auto operand_indices = std::index_sequence_for<X...>{};
  static constexpr auto result_indices = std::make_index_sequence<Call::results()>{};
  static_assert(Call::results() <= std::size_t(max_results) &&
                    sizeof...(X) <= std::size_t(max_operands),
                "cleave: a stencil in a traced program has more operands or results than the "
                "operations of programs");

  struct Op {
    S stencil;
    E of_domain;
  };

  /// The fields as far as their extents tell. @param shapes  of all operands
  static StencilFields fields_of(const E& of_domain, const Shape* shapes) {
    StencilFields fields;
    std::size_t i = 0;
    const auto add = [&]<class Field>(std::type_identity<Field>) {
      if constexpr (!is_number<Field>) {
        FieldWindow field;
        field.domain = shapes[i];
        field.reach = Call::reaches[fields.window.size()];
        field.edges = edges_of_domain<typename Field::value_type, Field::dims>(of_domain);
        if (i == Call::like) fields.like = fields.window.size();
        fields.add(field, nullptr);
      }
      ++i;
    };
    (add(std::type_identity<X>{}), ...);
    return fields;
  }

  /// @param target  extents that a target gives to a result that is coarser or finer
  static Box domain_of(const StencilFields& fields, const Shape& target,
                       const ErrorContext& context) {
    return stencil_domain(S::name, fields.window, fields.like, Call::is_aligned ? Shape{} : target,
                          context);
  }

  /// Checks the fields of several steps, and sets their reach.
  static RepeatPlan plan_steps(StencilFields& fields, const Box& domain, const Layout& layout,
                               const ErrorContext& context) {
    if constexpr (Steps == 1) return {};
    fields.domain = domain;
    return plan_repeat(S::name, fields, Call::results(), Steps, layout, context);
  }

  static int exchanges(const void* op, const Shape* shapes, const Shape& result,
                       const Layout& layout, const Shape& mesh) {
    StencilFields fields = fields_of(static_cast<const Op*>(op)->of_domain, shapes);
    const Box domain = domain_of(fields, result, {});
    plan_steps(fields, domain, layout, {});
    int count = 0;
    for (const FieldWindow& field : fields.window) {
      const FieldNeeds needs = field_needs(field, layout, domain);
      index_t ranks = 1;
      for (int a = 0; a < mesh.dims; ++a)
        if (redistribution::axes_of(needs.needs) >> a & 1u) ranks *= mesh[a];
      count += needs.exchanges && ranks > 1;
    }
    return count;
  }

  /// A result of the extents that are set, in the memory that is given for it if it suffices.
  static Result result_of(RawResult& y) {
    Shape extents = shape_at(y.extents, Call::dims), strides = row_major_strides(extents);
    for (int d = 0; d < Call::dims; ++d) y.strides[d] = strides[d];
    const std::size_t bytes = checked_bytes(y.extents, Call::dims, sizeof(typename Call::T));
    if (y.room == 0 || y.room < bytes) {
      y.storage = allocate_bytes(Device{}, bytes);
      y.data = y.storage.get();
    }
    std::shared_ptr<void> storage = y.storage;
    return TensorAccess::make<Result>(std::move(storage), y.data, y.extents, y.strides);
  }

  static void run(const void* op, const OperandRef* in, const Layout& layout, RawResult* results) {
    const Op& call = *static_cast<const Op*>(op);
    const std::tuple parts = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<typename PartOf<X>::type...>{PartOf<X>::of(in[I])...};
    }(operand_indices);
    const std::tuple operands =
        std::apply([](const auto&... x) { return std::tuple{with_rows(local_part(x))...}; }, parts);
    StencilFields fields = std::apply(
        [&](const auto&... x) {
          return stencil_fields<Call>(S::name, call.of_domain, std::tie(x...), operands);
        },
        parts);
    std::size_t first = 0;
    while (in[first].mesh == nullptr) ++first;
    const MeshState& mesh = *in[first].mesh;
    fields.domain = Box::of(shape_at(results[0].shape, Call::dims));
    fields.part = Box::of(Shape::filled(Call::dims, 0));
    RepeatPlan plan;
    if (mesh.is_member()) {
      const ErrorContext context = context_of(in, int(sizeof...(X)));
      fields.domain = domain_of(fields, shape_at(results[0].shape, Call::dims), context);
      plan = plan_steps(fields, fields.domain, layout, context);
      if constexpr (Steps == 1) exchange_ghosts(S::name, fields, layout, mesh);
      else exchange_ghosts_of_steps(S::name, fields, layout, mesh);
    }
    const Shape extents = fields.part.extents();
    for (std::size_t k = 0; k < Call::results(); ++k)
      for (int d = 0; d < Call::dims; ++d) results[k].extents[d] = extents[d];
    const std::tuple y = [&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::tuple{result_of(results[K])...};
    }(result_indices);
    if (is_dry() || !mesh.is_member()) return;
    const auto bound = bound_stencil(call.stencil, fields.window);
    [[maybe_unused]] const auto before = [&] {
      if constexpr (Steps > 1)
        return compute_steps_before_last<Call>(bound, fields, plan, operands);
      else return 0;
    }();
    std::apply(
        [&](const auto&... result) {
          stencil_results<Call>(
              bound, fields, operands,
              std::tuple<const std::remove_cvref_t<decltype(result)>&...>(result...));
        },
        y);
  }

  static constexpr Rule rule = [] {
    Rule rule;
    rule.operands = int(sizeof...(X));
    rule.results = int(Call::results());
    std::size_t i = 0;
    ((rule.operand[i++].dims = X::dims), ...);
    for (std::size_t k = 0; k < Call::results(); ++k) rule.result[k].dims = Call::dims;
    return rule;
  }();
  static constexpr StencilInfo of_stencil{&exchanges, &run};
  static constexpr OpInfo info = [] {
    OpInfo info;
    info.name = S::name;
    info.rule = &rule;
    info.stencil = &of_stencil;
    for (std::size_t k = 0; k < Call::results(); ++k) info.dtype[k] = dtype_of<typename Call::T>();
    return info;
  }();

  template <class T, int Rank, class D>
  static int value_of(spmd::Graph& graph, const spmd::Node& node, int leading,
                      const Traced<T, Rank, D>& x) {
    return value_in(graph, node, leading, x);
  }
  template <class T>
  static int value_of(spmd::Graph& graph, const spmd::Node&, int, const Number<T>& x) {
    return graph.add_number(x.value);
  }

 public:
  /// Adds a node. @return the results as a tuple
  template <class... Y>
  static auto add(const S& stencil, const E& of_domain, const std::tuple<const Y&...>& targets,
                  const X&... x) {
    const auto& leading = first_tensor(x...);
    spmd::Graph& graph = leading.graph();
    spmd::Node node;
    node.op = &info;
    node.name = S::name;
    node.attributes = spmd::Attributes::of(Op{stencil, of_domain});
    std::array<Shape, sizeof...(X)> shapes;
    std::size_t i = 0;
    ((node.operand[i++] = value_of(graph, node, leading.value(), x)), ...);
    for (i = 0; i < sizeof...(X); ++i) shapes[i] = graph.values[std::size_t(node.operand[i])].shape;
    StencilFields fields = fields_of(of_domain, shapes.data());
    const Box domain = domain_of(fields, target_extents<Call>(targets), context_of(leading));
    plan_steps(fields, domain, Layout(), context_of(leading));
    node.first = int(graph.values.size());
    for (int k = 0; k < int(Call::results()); ++k)
      graph.add(
          {int(graph.nodes.size()), k, -1, dtype_of<typename Call::T>(), domain.extents(), false});
    graph.nodes.push_back(node);
    if (graph.placer != nullptr) graph.placer->place_last(graph);
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::tuple{
          Traced<typename Call::T, Call::dims, Device>(graph, node.first + int(K))...};
    }(result_indices);
  }
};

template <>
struct StencilPath<2> {
  /// @return the results as a tuple; targets stand for them from now on
  template <class Called, class E, class... Y, class... X>
  static auto call(const Called& called, const E& of_domain, const std::tuple<const Y&...>& targets,
                   const X&... x) {
    constexpr bool all_traced = ((is_traced<X> || is_number<X>) && ...) && (is_traced<Y> && ...);
    static_assert(all_traced,
                  "cleave: a stencil mixes traced values with tensors; make the tensor an argument "
                  "of the traced function");
    if constexpr (!all_traced) {
      return std::tuple<>{};
    } else {
      constexpr int steps = steps_of<Called>;
      const auto& stencil = single_step(called);
      using S = std::remove_cvref_t<decltype(stencil)>;
      using Call = StencilCall<S, X...>;
      if constexpr (Call::check_operands() && Call::check_reach() &&
                    check_repeat<steps, Call, E, X...>())
        return written(TracedStencil<steps, S, E, X...>::add(stencil, of_domain, targets, x...),
                       stencil, targets);
      else return std::tuple<>{};
    }
  }

 private:
  template <class S, class Results, class... Y>
  static Results written(const Results& results, const S&, const std::tuple<const Y&...>& targets) {
    static_assert(sizeof...(Y) == 0 || sizeof...(Y) == std::tuple_size_v<Results>,
                  "cleave: apply takes one target per result of the stencil");
    if constexpr (sizeof...(Y) == std::tuple_size_v<Results>)
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        (require_value_of_target<std::tuple_element_t<K, Results>, Y>(), ...);
        (std::get<K>(targets).update(S::name, std::get<K>(results)), ...);
      }(std::index_sequence_for<Y...>{});
    return results;
  }
};

}  // namespace cleave::inline v0::detail
