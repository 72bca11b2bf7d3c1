// What calls check about their operands that types do not show, and the errors.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/ops/engine/call_context.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/rules/explain_solution.hpp>

namespace cleave::inline v0::detail {

CLEAVE_INLINE ErrorContext context_of(const OperandRef* operands, int count) {
  ErrorContext text;
  for (const OperandRef* x = operands; x != operands + count; ++x) {
    if (x->storage == nullptr) continue;
    const char* joint = text.shapes.empty() ? "" : " and ";
    text.shapes += joint + to_string(shape_at(x->shape, x->dims));
    if (x->mesh == nullptr) continue;
    text.placements += joint + to_string(*x->layout);
    const std::string name = x->mesh->describe();
    if (text.mesh.find(name) == text.mesh.npos) text.mesh += joint + name;
    text.rank = x->mesh->world_rank();
  }
  return text;
}

CLEAVE_INLINE Layout CallContext::needed(int i, const Layout& required) const {
  if (!any_repeats || mesh == nullptr) return required;
  int conflict = -1;
  const Layout layout = repeatable(*info.rule, extents, i, {operands[i].shape, operands[i].dims},
                                   *operands[i].layout, required, &mesh->extents(), conflict);
  if (conflict >= 0)
    throw Error(info.name,
                "dimension " + std::to_string(int(required[conflict].dim)) + " of operand " +
                    std::to_string(i) + " has extent 1 and broadcasts, but is sharded over axis '" +
                    mesh->name(conflict) + "'; redistribute it to Replicate first",
                context());
  return layout;
}

CLEAVE_INLINE void CallContext::require_repeatable(const Layout* required) const {
  for (int i = 0; i < info.rule->operands; ++i)
    if (operands[i].mesh != nullptr) static_cast<void>(needed(i, required[i]));
}

CLEAVE_INLINE void CallContext::require_same_mesh(const MeshState& other) const {
  if (!(*mesh == other)) throw Error(info.name, "the operands are on different meshes", context());
}

CLEAVE_INLINE void CallContext::compare_factors() {
  std::array<ExtentsRef, std::size_t(max_operands)> shapes;
  for (int i = 0; i < info.rule->operands; ++i)
    shapes[std::size_t(i)] = {operands[i].shape, operands[i].dims};
  const ExtentsConflict conflict =
      read_extents(*info.rule, info.broadcasts, shapes.data(), {}, extents);
  any_repeats = conflict.repeats;
  if (conflict.operand >= 0 && (mesh == nullptr || mesh->is_member())) throw_extents(conflict);
}

CLEAVE_INLINE void CallContext::throw_extents(const ExtentsConflict& conflict) const {
  const index_t extent = operands[conflict.operand].shape[conflict.dim];
  throw Error(info.name, extents_error(conflict, *info.rule, extent), context());
}

}  // namespace cleave::inline v0::detail
