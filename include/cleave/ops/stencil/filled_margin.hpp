// Ghosts that exchange_halo has put into a margin, and how a stencil reads them.
#pragma once

#include <cstddef>
#include <memory>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/ops/stencil/stencil_plan.hpp>

namespace cleave::inline v0::detail {

/// Ghosts that an exchange has put into the margin of a tensor.
struct FilledMargin {
  Reach reach{};
  EdgesOfDomain edges{};  ///< without values
  unsigned changes = 0;   ///< of the tensor's elements before the exchange
  unsigned fills = 0;     ///< of the margin, including this one

  /// The indices around a rank's own ones for which there are elements.
  Box around(Box own) const;
  /// @param now  the changes of the elements until now
  /// @throws Error if the elements or the margin have changed since
  void require_unchanged(const char* name, const std::shared_ptr<void>& storage, unsigned now,
                         const ErrorContext& context) const;
};

/// Lets a stencil read the ghosts in a field's margin.
///
/// @param k        the field's number
/// @param storage  of the field's local part
/// @param now      the changes of its elements until now
/// @throws Error if there are no such ghosts, or if the stencil reads farther
CLEAVE_INLINE void use_filled_margin(const char* name, StencilFields& fields, std::size_t k,
                                     const FilledMargin& filled,
                                     const std::shared_ptr<void>& storage, unsigned now,
                                     const ErrorContext& context);

/// Prepares the exchange of ghosts into the margin of one tensor.
///
/// @param fields  of one field, whose reach is that of the ghosts
/// @throws Error if the margin is narrower than the reach
CLEAVE_INLINE GhostExchange prepare_margin(const char* name, StencilFields& fields,
                                           const Layout& layout, const MeshState& mesh,
                                           const ErrorContext& context);
/// Fills the margin of one local tensor.
CLEAVE_INLINE void fill_margin(const char* name, StencilFields& fields,
                               const ErrorContext& context);

}  // namespace cleave::inline v0::detail

#if !CLEAVE_COMPILED
#include <cleave/ops/stencil/filled_margin_body.hpp>
#endif
