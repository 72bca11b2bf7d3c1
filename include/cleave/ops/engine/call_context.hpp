// What a call derives from its operands' extents and meshes before its kernel runs: whether they
// agree, the extents of the results, and the alignment of operands with a result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/engine/op_info.hpp>
#include <cleave/ops/engine/operation.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/rules/explain_solution.hpp>
#include <cleave/rules/extents.hpp>

namespace cleave::inline v0::detail {

/// The first `dims` values as a Shape.
inline Shape shape_at(const index_t* values, int dims) {
  Shape shape;
  shape.dims = dims;
  for (int d = 0; d < dims; ++d) shape[d] = values[d];
  return shape;
}

/// A type-erased result of a call. The caller provides arrays for its extents and strides.
struct RawResult {
  std::shared_ptr<void> storage{};
  void* data = nullptr;
  index_t* shape = nullptr;    ///< global extents
  index_t* extents = nullptr;  ///< on this rank
  index_t* strides = nullptr;
  std::size_t room = 0;  ///< bytes that the caller provides at `data` for the elements of a kernel
};

/// Shapes, placements, mesh and rank of a call, for errors.
[[gnu::cold]] ErrorContext context_of(const OperandRef* operands, int count);

/// Whether dimensions of the same factor have the same extent; false is inconclusive.
constexpr bool all_agree(const ExtentsTable& table, const OperandRef* operands) {
  for (int p = 0; p < table.pairs; ++p) {
    const auto& [a, b] = table.pair[std::size_t(p)];
    if (operands[a.operand].shape[a.dim] != operands[b.operand].shape[b.dim]) return false;
  }
  return table.pairs >= 0;
}

/// The operands of a call, and what is derived from them.
struct CallContext {
  const OpInfo& info;
  const OperandRef* operands;
  const MeshState* mesh;               ///< null for a call on local tensors
  FactorExtents extents;               ///< set if operands differ in extents
  bool any_repeats = false;            ///< whether an operand broadcasts a dimension of extent 1
  const RandomState* draws = nullptr;  ///< of the program that makes the call, if any

  /// Compares meshes and extents. @throws Error if the meshes differ, or (on ranks of the mesh,
  /// which know the extents) if dimensions of one factor have different extents
  CallContext(const OpInfo& op, const OperandRef* in)
      : info(op), operands(in), mesh(first_mesh(in, op.rule->operands)) {
    for (int i = 1; i < op.rule->operands; ++i)
      if (in[i].mesh != nullptr && in[i].mesh != mesh) require_same_mesh(*in[i].mesh);
    if (!all_agree(*info.table, operands)) [[unlikely]]
      compare_factors();
  }

  bool repeats(int i, int d) const {
    return any_repeats && detail::repeats(*info.rule, extents, i, d, operands[i].shape[d]);
  }

  /// The placements that operand i needs, given what it broadcasts. @see repeatable
  /// @throws Error if it broadcasts a dimension that it shards
  Layout needed(int i, const Layout& required) const;

  /// @throws Error if an operand broadcasts a dimension that it shards. @see needed
  [[gnu::cold]] void require_repeatable(const Layout* required) const;

  ErrorContext context() const { return context_of(operands, info.rule->operands); }

 private:
  static const MeshState* first_mesh(const OperandRef* in, int operands) {
    int i = 0;
    while (i < operands - 1 && in[i].mesh == nullptr) ++i;
    return in[i].mesh;
  }

  [[gnu::cold]] void require_same_mesh(const MeshState& other) const;

  [[gnu::cold]] void compare_factors();

  [[noreturn]] void throw_extents(const ExtentsConflict& conflict) const;
};

/// The global indices that this rank holds; empty on a rank outside the mesh.
inline Box local_box(const MeshState* mesh, const Layout* layout, const Shape& shape) {
  if (mesh == nullptr) return Box::of(shape);
  if (!mesh->is_member()) return Box::of(Shape::filled(shape.dims, 0));
  return owned_box(*layout, shape, mesh->extents(), mesh->coordinate());
}

/// An operand dimension of the same factor that is not broadcast, if `first` is.
[[gnu::cold]] inline DimPlace longest_source(const CallContext& call, DimPlace first, int result,
                                             int d) {
  if (first.operand < 0 || !call.repeats(first.operand, first.dim)) return first;
  const Rule& rule = *call.info.rule;
  const int factor = rule.result[std::size_t(result)].factor[std::size_t(d)];
  for (int i = 0; i < rule.operands; ++i)
    if (const int e = rule.operand[std::size_t(i)].dim_of(factor); e >= 0 && !call.repeats(i, e))
      return {std::int8_t(i), std::int8_t(e)};
  return first;
}

/// The operand dimension that gives dimension d of a result its extent.
inline DimPlace source_of(const CallContext& call, int result, int d) {
  const DimPlace first = call.info.table->source[std::size_t(result)][std::size_t(d)];
  return call.any_repeats ? longest_source(call, first, result, d) : first;
}

/// Sets the extents of result k that no operand gives. Local extents follow from the layout, once
/// all global ones are set.
///
/// @param fresh  global extents of the factors that no operand has
[[gnu::cold]] inline void set_fresh_extents(const CallContext& call, const Shape& fresh,
                                            const Layout* computed, int k, RawResult& y) {
  const int dims = call.info.rule->result[std::size_t(k)].dims;
  unsigned is_fresh = 0;
  for (int d = 0; d < dims; ++d) {
    const DimPlace from = call.info.table->source[std::size_t(k)][std::size_t(d)];
    if (from.operand >= 0) continue;
    y.shape[d] = y.extents[d] = fresh[from.dim];
    is_fresh |= 1u << d;
  }
  if (call.mesh == nullptr) return;
  Shape own = Shape::filled(dims, 0);
  if (call.mesh->is_member())
    own = local_shape(computed[k], shape_at(y.shape, dims), call.mesh->extents(),
                      call.mesh->coordinate());
  for (int d = 0; d < dims; ++d)
    if (is_fresh >> d & 1u) y.extents[d] = own[d];
}

/// Sets the extents and strides of result k. Extents are copied from this rank's operands if one
/// has the dimension.
///
/// @param fresh  global extents of the factors that no operand has
inline void set_extents(const CallContext& call, const OperandRef* in, const Shape& fresh,
                        const Layout* computed, int k, RawResult& y) {
  const int dims = call.info.rule->result[std::size_t(k)].dims;
  bool any_fresh = false;
  for (int d = 0; d < dims; ++d) {
    const DimPlace from = source_of(call, k, d);
    any_fresh = any_fresh || from.operand < 0;
    if (from.operand < 0) continue;
    y.shape[d] = in[from.operand].shape[from.dim];
    y.extents[d] = in[from.operand].extents[from.dim];
  }
  if (any_fresh) [[unlikely]]
    set_fresh_extents(call, fresh, computed, k, y);
  index_t step = 1;
  for (int d = dims - 1; d >= 0; --d) {
    y.strides[d] = step;
    step *= y.extents[d];
  }
}

/// Operands of an elementwise operation, aligned with the result: with stride 0 along broadcast
/// dimensions. Refers to the extents of the result.
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
  AlignedOperands(const AlignedOperands&) = delete;  // points into itself

  const OperandRef* data() const { return operands_.data(); }

 private:
  std::array<OperandRef, std::size_t(max_operands)> operands_;
  std::array<index_t, std::size_t(max_operands) * std::size_t(max_dims)> strides_;
};

/// Whether the kernel takes the operands as they are; if not, align them with the result.
inline bool are_aligned(const CallContext& call) {
  return !call.info.is_elementwise || (!call.any_repeats && call.info.same_dims);
}

}  // namespace cleave::inline v0::detail

namespace cleave::inline v0 {

inline void Task::fail(const std::string& message) const {
  throw Error(name, message, detail::context_of(in, operands));
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/ops/engine/call_context_body.hpp>
#endif
