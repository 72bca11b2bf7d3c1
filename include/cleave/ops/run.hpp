// Runs operations without knowing their types: extents and meshes are compared, operands brought to
// the placements that the solution requires, results allocated, the kernel called.
//
// One OpInfo stands for an operation on given element types and numbers of dimensions. Calls on
// local tensors, on distributed tensors and programs all run the same `compute`.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/dtensor/route.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/operation.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/rules/explain.hpp>
#include <cleave/rules/extents.hpp>
#include <cleave/rules/groups.hpp>
#include <cleave/rules/solver.hpp>

namespace cleave::detail {

/// An operation on given element types, numbers of dimensions and a device.
struct OpInfo {
  const char* name = "";
  const Rule* rule = nullptr;
  const ExtentsTable* table = nullptr;
  bool broadcasts = false;
  bool is_elementwise = false;
  bool is_view = false;
  bool needs_box = false;
  std::array<DType, max_results> dtype{};  ///< of the results
  void (*run)(const void* op, const cleave::Task& task) = nullptr;
};

template <class T, int Dims>
kernels::Strided<T> strided(const ArrayRef& array) {
  return [&]<std::size_t... D>(std::index_sequence<D...>) {
    using Extents = std::array<index_t, std::size_t(Dims)>;
    return kernels::Strided<T>{static_cast<T*>(array.data), Shape(Extents{array.extents[D]...}),
                               Shape(Extents{array.strides[D]...})};
  }(std::make_index_sequence<std::size_t(Dims)>{});
}

/// What a kernel is called with for an operand: a strided view, or a number by value.
template <class T, int Dims>
struct KernelOperand {
  static kernels::Strided<const T> of(const ArrayRef& array) {
    return strided<const T, Dims>(array);
  }
};
template <class T, int Dims>
struct KernelOperand<Number<T>, Dims> {
  static kernels::Scalar<T> of(const ArrayRef& array) {
    return {*static_cast<const T*>(array.data)};
  }
};

/// Calls the kernel: all that is compiled per operation, element types and device.
///
/// @tparam In,Out  numbers of dimensions of operands and results; elementwise operations have their
///                 operands aligned with the result
template <class Op, class Device, int... In, int... Out, class... T, class... R>
void run_kernel(const Op& op, const cleave::Task& task, std::integer_sequence<int, In...>,
                std::integer_sequence<int, Out...>, Types<T...>, Types<R...>) {
  if constexpr (is_view_op<Op>) {
    op.view(task);
  } else {
    constexpr int aligned = (0 + ... + Out);  // of an elementwise operation's only result
    [&]<std::size_t... I, std::size_t... K>(std::index_sequence<I...>, std::index_sequence<K...>) {
      constexpr kernels::On<Device> on;
      if constexpr (is_elementwise<Op>)
        map_elements(on, op, strided<R, Out>(task.out[K])...,
                     KernelOperand<T, aligned>::of(task.in[I])...);
      else
        op.kernel(on, task, strided<R, Out>(task.out[K])...,
                  KernelOperand<T, In>::of(task.in[I])...);
    }(std::index_sequence_for<T...>{}, std::index_sequence_for<R...>{});
  }
}

template <class Sig>
inline constexpr ExtentsTable extents_table{rule_of<Sig>};

/// The numbers of dimensions of the results of a rule.
template <class Sig, std::size_t... K>
std::integer_sequence<int, rule_of<Sig>.result[K].dims...> result_dims(std::index_sequence<K...>);

/// The OpInfo of an operation: a constant.
template <class Op, class Device, class TypeList, int... Dims>
struct InfoOf;
template <class Op, class Device, class... T, int... Dims>
struct InfoOf<Op, Device, Types<T...>, Dims...> {
  using Results = results_of<Op, T...>;
  using Sig = signature_of<Op, Types<T...>, Dims...>;
  using ResultDims = decltype(result_dims<Sig>(
      std::make_index_sequence<std::size_t(Results::size)>{}));

  static void run(const void* op, const cleave::Task& task) {
    run_kernel<Op, Device>(*static_cast<const Op*>(op), task,
                           std::integer_sequence<int, Dims...>{}, ResultDims{}, Types<T...>{},
                           Results{});
  }

  static constexpr OpInfo value = [] {
    OpInfo info{Op::name, &rule_of<Sig>, &extents_table<Sig>, rule_broadcasts<Sig>(),
                cleave::is_elementwise<Op>, is_view_op<Op>, detail::needs_box<Op>(), {}, &run};
    static_assert(rule_of<Sig>.results == Results::size,
                  "cleave: an operation names one element type per result of its factors");
    [&]<class... R>(Types<R...>) {
      std::size_t k = 0;
      ((info.dtype[k++] = dtype_of<R>()), ...);
    }(Results{});
    return info;
  }();
};

/// `dims` numbers as a Shape.
inline Shape shape_at(const index_t* values, int dims) {
  Shape shape;
  shape.dims = dims;
  for (int d = 0; d < dims; ++d) shape[d] = values[d];
  return shape;
}

/// The local elements of an operand.
inline redistribution::Block block_of(const OperandRef& operand) {
  return {operand.storage != nullptr ? *operand.storage : nullptr,
          View{operand.data, operand.dtype, shape_at(operand.extents, operand.dims),
               shape_at(operand.strides, operand.dims)}};
}

/// A result of a call, without its type: the caller has room for as many extents as the rule says.
struct RawResult {
  std::shared_ptr<void> storage{};
  void* data = nullptr;
  index_t* shape = nullptr;    ///< global extents
  index_t* extents = nullptr;  ///< on this rank
  index_t* strides = nullptr;
};

/// What a call of an operation knows beside its operands.
struct CallContext {
  const OpInfo& info;
  const OperandRef* operands;
  const MeshState* mesh = nullptr;  ///< null for a call on local tensors
  FactorExtents extents;     ///< set where an operand repeats a dimension of extent 1
  bool any_repeats = false;  ///< whether one does

  /// Compares meshes and extents. @throws Error if the meshes differ; on ranks of the mesh, which
  /// know them, if the extents of a factor do
  CallContext(const OpInfo& op, const OperandRef* in) : info(op), operands(in) {
    for (int i = 0; i < op.rule->operands; ++i) {
      if (in[i].mesh == nullptr) continue;
      if (mesh == nullptr) mesh = in[i].mesh;
      else if (!(*mesh == *in[i].mesh))
        throw Error(op.name, "the operands are on different meshes of one type", context());
    }
    if (!all_agree()) compare_factors();
  }

  bool repeats(int i, int d) const {
    return any_repeats &&
           detail::repeats(*info.rule, extents, i, d, operands[i].shape[d]);
  }

  /// The placements that operand i really needs. @see repeatable
  /// @throws Error if it repeats a dimension that it shards
  Layout needed(int i, const Layout& required) const {
    if (!any_repeats || mesh == nullptr) return required;
    int conflict = -1;
    const Layout layout =
        repeatable(*info.rule, extents, i, {operands[i].shape, operands[i].dims},
                   *operands[i].layout, required, &mesh->extents(), conflict);
    if (conflict >= 0)
      throw Error(info.name,
                  "dimension " + std::to_string(int(required[conflict].dim)) + " of operand " +
                      std::to_string(i) +
                      " has extent 1 and is repeated, but it is sharded over axis '" +
                      mesh->name(conflict) + "'; redistribute it to Replicate first",
                  context());
    return layout;
  }

  /// @param fresh     extents of the factors that no operand has
  /// @param in        the operands as they lie now
  /// @param computed  the results' layouts
  /// @throws Error    on all ranks of the mesh, if shards end inside of a group
  void require_whole_groups(const Shape& fresh, const OperandRef* in,
                            const Layout* computed) const {
    const Rule& rule = *info.rule;
    std::array<ExtentsRef, std::size_t(max_operands)> shapes{};
    std::array<const Layout*, std::size_t(max_operands)> layouts{};
    for (int i = 0; i < rule.operands; ++i) {
      shapes[std::size_t(i)] = {in[i].shape, in[i].dims};
      layouts[std::size_t(i)] = in[i].layout;
    }
    FactorExtents known;
    read_extents(rule, false, shapes.data(), fresh, known);
    const GroupConflict conflict =
        find_group_conflict(rule, known, layouts.data(), computed, mesh->extents());
    if (conflict.found) throw Error(info.name, to_string(conflict, mesh->label(conflict.axes)), context());
  }

  /// Shapes, placements, mesh and rank, for errors.
  ErrorContext context() const {
    ErrorContext text;
    for (int i = 0; i < info.rule->operands; ++i) {
      const OperandRef& operand = operands[i];
      if (operand.storage == nullptr) continue;
      const Shape shape = shape_at(operand.shape, operand.dims);
      const char* joint = text.shapes.empty() ? "" : " and ";
      text.shapes += joint + to_string(shape);
      if (operand.mesh == nullptr) continue;
      text.placements += joint + to_string(*operand.layout);
      const std::string name = operand.mesh->describe();
      if (text.mesh.find(name) == text.mesh.npos) text.mesh += joint + name;
      text.rank = operand.mesh->world_rank();
    }
    return text;
  }

 private:
  bool all_agree() const {
    const ExtentsTable& table = *info.table;
    for (int p = 0; p < table.pairs; ++p) {
      const auto& [a, b] = table.pair[std::size_t(p)];
      if (operands[a.operand].shape[a.dim] != operands[b.operand].shape[b.dim]) return false;
    }
    return table.pairs >= 0;
  }

  void compare_factors() {
    std::array<ExtentsRef, std::size_t(max_operands)> shapes;
    for (int i = 0; i < info.rule->operands; ++i)
      shapes[std::size_t(i)] = {operands[i].shape, operands[i].dims};
    const ExtentsConflict conflict =
        read_extents(*info.rule, info.broadcasts, shapes.data(), {}, extents);
    any_repeats = conflict.repeats;
    if (conflict.operand >= 0 && (mesh == nullptr || mesh->is_member())) throw_extents(conflict);
  }

  [[noreturn]] void throw_extents(const ExtentsConflict& conflict) const {
    const Rule::Operand& operand = info.rule->operand[std::size_t(conflict.operand)];
    const int factor = operand.factor[std::size_t(conflict.dim)];
    throw Error(info.name,
                std::string("the operands disagree about '") +
                    info.rule->letter[std::size_t(factor)] + "' of " + to_string(*info.rule) +
                    ": operand " + std::to_string(conflict.operand) + " has " +
                    std::to_string(operands[conflict.operand].shape[conflict.dim]) +
                    ", the ones before it " + std::to_string(conflict.expected),
                context());
  }
};

/// The global indices that this rank holds; none on a rank outside of the mesh.
inline Box local_box(const MeshState* mesh, const Layout* layout, const Shape& shape) {
  if (mesh == nullptr) return Box::of(shape);
  if (!mesh->is_member()) return Box::of(Shape::filled(shape.dims, 0));
  return owned_box(*layout, shape, mesh->extents(), mesh->coordinate());
}

/// The extent on this rank of a dimension that only the result has.
inline index_t new_extent(const MeshState* mesh, const Layout* layout, const Shape& shape, int d) {
  if (mesh == nullptr) return shape[d];
  if (!mesh->is_member()) return 0;
  bool is_sharded = false;
  for (int a = 0; a < layout->axes; ++a) is_sharded = is_sharded || (*layout)[a].is_shard(d);
  return is_sharded ? local_box(mesh, layout, shape).extent(d) : shape[d];
}

/// The operand's dimension that a dimension of a result has its extent from: one that does not
/// repeat.
inline DimPlace source_of(const CallContext& call, int result, int d) {
  const DimPlace first = call.info.table->source[std::size_t(result)][std::size_t(d)];
  if (!call.any_repeats || first.operand < 0 || !call.repeats(first.operand, first.dim))
    return first;
  const Rule& rule = *call.info.rule;
  const int factor = rule.result[std::size_t(result)].factor[std::size_t(d)];
  for (int i = 0; i < rule.operands; ++i)
    if (const int e = rule.operand[std::size_t(i)].dim_of(factor); e >= 0 && !call.repeats(i, e))
      return {std::int8_t(i), std::int8_t(e)};
  return first;
}

/// Sets the extents and strides of the results: as operands on this rank have them; of factors
/// that no operand has, as the layout gives them.
///
/// @param fresh  global extents of these factors
inline void set_extents(const CallContext& call, const OperandRef* in, const Shape& fresh,
                        const Layout* computed, RawResult* results) {
  const Rule& rule = *call.info.rule;
  const ExtentsTable& table = *call.info.table;
  for (int k = 0; k < rule.results; ++k) {
    const int dims = rule.result[std::size_t(k)].dims;
    RawResult& y = results[k];
    for (int d = 0, next = 0; d < dims; ++d) {
      const DimPlace from = call.any_repeats ? source_of(call, k, d)
                                             : table.source[std::size_t(k)][std::size_t(d)];
      if (from.operand >= 0) {
        y.shape[d] = in[from.operand].shape[from.dim];
        y.extents[d] = in[from.operand].extents[from.dim];
      } else {
        y.shape[d] = fresh[next++];
        y.extents[d] = -1;
      }
    }
    index_t step = 1;
    for (int d = dims - 1; d >= 0; --d) {
      if (y.extents[d] < 0)
        y.extents[d] = new_extent(call.mesh, computed != nullptr ? computed + k : nullptr,
                                  shape_at(y.shape, dims), d);
      y.strides[d] = step;
      step *= y.extents[d];
    }
  }
}

/// Operands of an elementwise operation, aligned with the result: a stride of 0 along dimensions
/// that repeat. Refers to the extents of the result.
class AlignedOperands {
 public:
  AlignedOperands(const CallContext& call, const OperandRef* in, const ArrayRef& result) {
    for (int i = 0; i < call.info.rule->operands; ++i) {
      OperandRef& operand = operands_[std::size_t(i)];
      operand = in[i];
      const int skip = result.dims - operand.dims;
      if (skip == 0 && !call.any_repeats) continue;
      index_t* const strides = strides_.data() + i * max_dims;
      for (int d = 0; d < result.dims; ++d)
        strides[d] = d < skip || call.repeats(i, d - skip) ? 0 : operand.strides[d - skip];
      operand.extents = result.extents;
      operand.strides = strides;
      operand.dims = result.dims;
    }
  }
  AlignedOperands(const AlignedOperands&) = delete;  // refers to itself

  const OperandRef* data() const { return operands_.data(); }

 private:
  std::array<OperandRef, std::size_t(max_operands)> operands_;
  std::array<index_t, std::size_t(max_operands) * std::size_t(max_dims)> strides_;
};

/// Whether operands of an elementwise operation lie as its result does already; numbers lie nowhere.
inline bool are_aligned(const CallContext& call, const OperandRef* in, int dims) {
  if (call.any_repeats) return false;
  for (int i = 0; i < call.info.rule->operands; ++i)
    if (in[i].dims != dims && in[i].storage != nullptr) return false;
  return true;
}

/// Runs the kernel on operands that lie where it needs them and as it needs them.
inline void run_on(const CallContext& call, const void* op, const OperandRef* in,
                   const Layout* computed, RawResult* results, ArrayRef* out) {
  const OpInfo& info = call.info;
  cleave::Task task;
  task.name = info.name;
  task.in = in;
  task.out = out;
  task.strides = results[0].strides;
  task.context = [](const void* of) { return static_cast<const CallContext*>(of)->context(); };
  task.context_of = &call;
  if (!info.needs_box) {
    info.run(op, task);
  } else {
    const Box box = local_box(call.mesh, computed, shape_at(results[0].shape, out[0].dims));
    const Box in_box = local_box(call.mesh, in[0].layout, shape_at(in[0].shape, in[0].dims));
    task.box = &box;
    task.in_box = &in_box;
    info.run(op, task);
  }
  if (info.is_view) results[0].data = out[0].data;
}

/// Makes a view of a dense copy of the only operand, whose own strides do not allow it.
template <class Device>
void view_copy(const CallContext& call, const void* op, const OperandRef& in,
               const Layout* computed, RawResult* results, ArrayRef* out) {
  redistribution::Block copy = redistribution::allocate<Device>(in.dtype, shape_at(in.extents, in.dims));
  strided_copy(Device{}, block_of(in).view, copy.view);
  OperandRef dense = in;
  dense.data = copy.view.data;
  dense.strides = copy.view.strides.begin();
  dense.storage = &copy.storage;
  run_on(call, op, &dense, computed, results, out);
  results[0].storage = std::move(copy.storage);
}

/// Allocates the results and runs the kernel.
///
/// @param op        the operation, with its attributes
/// @param fresh     extents of the factors that only results have, in the order of the result's
///                  dimensions
/// @param in        the operands, after redistribution
/// @param computed  the results' layouts, or null for local tensors
/// @param results   as many as the rule has; written
template <class Device>
void compute(const CallContext& call, const void* op, const Shape& fresh, const OperandRef* in,
             const Layout* computed, RawResult* results) {
  const OpInfo& info = call.info;
  const Rule& rule = *info.rule;
  if (rule.kept != 0 && call.mesh != nullptr && call.mesh->is_member())
    call.require_whole_groups(fresh, in, computed);
  set_extents(call, in, fresh, computed, results);
  std::array<ArrayRef, std::size_t(max_results)> out;
  for (int k = 0; k < rule.results; ++k) {
    RawResult& y = results[k];
    const int dims = rule.result[std::size_t(k)].dims;
    if (info.is_view) {
      y.storage = *in[0].storage;
    } else {
      y.storage = allocate_bytes(
          Device{}, checked_bytes(y.extents, dims, size_of(info.dtype[std::size_t(k)])));
      y.data = y.storage.get();
    }
    out[std::size_t(k)] = {y.data, y.extents, y.strides, dims};
  }
  if (!info.is_elementwise || are_aligned(call, in, out[0].dims)) {
    run_on(call, op, in, computed, results, out.data());
    if (info.is_view && out[0].data == nullptr && block_of(in[0]).view.size() > 0)
      view_copy<Device>(call, op, in[0], computed, results, out.data());
  } else {
    run_on(call, op, AlignedOperands(call, in, out[0]).data(), computed, results, out.data());
  }
}

/// A call on distributed operands as constants of its types.
struct PlacedCall {
  const OpInfo* info = nullptr;
  const Solution* solution = nullptr;
  unsigned moves = 0;  ///< bit i: operand i lies elsewhere than the kernel needs it
  bool result_moves = false;
  std::array<const Route*, std::size_t(max_operands)> route{};  ///< of the operands that move
  const Route* result_route = nullptr;
};

/// Local elements brought from one layout to another.
/// @collective every rank of the mesh
template <class Device>
redistribution::Block moved(const Plan* plan, const Layout& from, const Layout& to,
                            redistribution::Block block, const MeshState& mesh, const Shape& shape,
                            const char* name) {
  return redistribution::run<Device>(plan, from, to, std::move(block), {mesh, shape, name});
}

/// OperandRef i, at the end of its route.
template <class Device>
void move_operand(const CallContext& call, const PlacedCall& placed, int i, const Layout& target,
                  OperandRef& operand, redistribution::Block& block) {
  const Route* route = placed.route[std::size_t(i)];
  const Plan* plan = route != nullptr && target == route->target ? route->plan : nullptr;
  block = moved<Device>(plan, *operand.layout, target, block_of(operand), *call.mesh,
                        shape_at(operand.shape, operand.dims), call.info.name);
  operand.data = block.view.data;
  operand.extents = block.view.extents.begin();
  operand.strides = block.view.strides.begin();
  operand.storage = &block.storage;
  operand.layout = &placed.solution->required[std::size_t(i)];
}

/// Calls f with the operands where the kernel needs them.
/// @collective every rank of the mesh, if an operand moves
template <class Device, class F>
void with_moved_operands(const CallContext& call, const PlacedCall& placed,
                            const OperandRef* in, const F& f) {
  const int count = call.info.rule->operands;
  const Layout* const required = placed.solution->required.data();
  if (placed.moves == 0) {
    for (int i = 0; call.any_repeats && i < count; ++i)
      if (in[i].mesh != nullptr) static_cast<void>(call.needed(i, required[i]));
    return f(in);
  }
  std::array<OperandRef, std::size_t(max_operands)> there;
  std::array<redistribution::Block, std::size_t(max_operands)> blocks;
  for (int i = 0; i < count; ++i) {
    there[std::size_t(i)] = in[i];
    if (in[i].mesh == nullptr) continue;
    const Layout target = call.needed(i, required[i]);
    if (!(target == *in[i].layout))
      move_operand<Device>(call, placed, i, target, there[std::size_t(i)], blocks[std::size_t(i)]);
  }
  f(static_cast<const OperandRef*>(there.data()));
}

/// Runs a call on distributed operands.
///
/// @param fresh    extents of the factors that only results have
/// @param results  as many as the rule has; written
/// @collective     every rank of the mesh, if an operand or a result moves
template <class Device>
void run_placed(const PlacedCall& placed, const void* op, const Shape& fresh, const OperandRef* in,
                RawResult* results) {
  const OpInfo& info = *placed.info;
  const CallContext call(info, in);
  with_moved_operands<Device>(call, placed, in, [&](const OperandRef* there) {
    compute<Device>(call, op, fresh, there, placed.solution->computed.data(), results);
  });
  if (!placed.result_moves) return;
  RawResult& y = results[0];
  const int dims = info.rule->result[0].dims;
  const Route& route = *placed.result_route;
  redistribution::Block block = moved<Device>(
      route.plan, route.source, route.target,
      {std::move(y.storage),
       View{y.data, info.dtype[0], shape_at(y.extents, dims), shape_at(y.strides, dims)}},
      *call.mesh, shape_at(y.shape, dims), info.name);
  y.storage = std::move(block.storage);
  y.data = block.view.data;
  for (int d = 0; d < dims; ++d) {
    y.extents[d] = block.view.extents[d];
    y.strides[d] = block.view.strides[d];
  }
}

/// Runs a call on local tensors. @see run_placed
template <class Device>
void run_local(const OpInfo& info, const void* op, const Shape& fresh, const OperandRef* in,
               RawResult* results) {
  compute<Device>(CallContext(info, in), op, fresh, in, nullptr, results);
}

}  // namespace cleave::detail
