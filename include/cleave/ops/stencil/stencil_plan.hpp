// Which elements of each field a rank reads to compute its part of a stencil, without the types of
// the fields.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/stencil/field_window.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/tensor/margin.hpp>

namespace cleave::detail {

/// The fields of a call on this rank, and the indices for which it computes the stencil.
struct StencilFields {
  std::vector<FieldWindow> window{};
  std::vector<const ReturnMargin*> margin{};  ///< of each field; null: none
  Box domain{};                               ///< of all ranks
  Box part{};                                 ///< of this rank
  std::vector<std::shared_ptr<void>> ghosts{};
};

/// The indices for which a stencil is computed: all, except where edges are `none`.
///
/// @param target  extents of a target that may be coarser or finer than the fields; else no extents
/// @throws Error if periodic fields differ in extents, or have too few elements for edges `none`
CLEAVE_INLINE Box stencil_domain(const char* name, std::span<const FieldWindow> fields,
                                 const Shape& target, const ErrorContext& context);

/// Checks a target of a stencil.
///
/// @param result  the extents of this rank's part of the result
CLEAVE_INLINE void check_stencil_target(const char* name, const ConstView& y, const Shape& result,
                                        std::span<const FieldWindow> fields);

/// Fills margins of local fields beyond the edges of the domain.
CLEAVE_INLINE void fill_margins(StencilFields& fields);

/// Reads what this rank's part of the result needs of distributed fields.
/// @collective every rank of the mesh, if elements of other ranks are read
CLEAVE_INLINE void exchange_ghosts(const char* name, StencilFields& fields, const Layout& layout,
                                   const MeshState& mesh);

}  // namespace cleave::detail

#if !CLEAVE_COMPILED
#include <cleave/ops/stencil/stencil_plan_body.hpp>
#endif
