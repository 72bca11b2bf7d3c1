// Several steps of a stencil after one exchange: each rank receives what all steps read, and
// computes the elements of its neighbours that its later steps read as its neighbours do.
//
// J. Demmel, M. Hoemmen, M. Mohiyuddin, K. Yelick: Avoiding communication in sparse matrix
// computations. IPDPS 2008.
#pragma once

#include <cstddef>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/ops/stencil/stencil_plan.hpp>
#include <cleave/placement/dim_map.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/redistribute/needs.hpp>

namespace cleave::inline v0::detail {

/// The elements that a rank computes in each of several steps.
struct RepeatPlan {
  int steps = 1;
  Shape lo{}, hi{};     ///< by how much a step reads beyond what it computes
  unsigned images = 0;  ///< dimensions in which periodic images of elements are computed

  /// The indices that a step computes, some of them images.
  constexpr Box computed(const Box& part, const Shape& domain, int step) const {
    Box box = part;
    if (part.empty()) return box;
    const index_t later = steps - 1 - step;
    for (int d = 0; d < box.dims(); ++d) {
      box.begin[d] += later * lo[d], box.end[d] += later * hi[d];
      if (images >> d & 1u) continue;
      box.begin[d] = box.begin[d] < 0 ? 0 : box.begin[d];
      box.end[d] = box.end[d] > domain[d] ? domain[d] : box.end[d];
    }
    return box;
  }
};

/// Calls f(indices in the domain, shift) for the parts of a box of images: `indices` + `shift` is
/// in the box.
template <class F>
constexpr void each_period(const Box& box, const Shape& domain, const F& f) {
  if (box.empty()) return;
  Shape first = box.begin, count = box.begin;
  for (int d = 0; d < box.dims(); ++d) {
    first[d] = floor_divide(box.begin[d], domain[d]);
    count[d] = floor_divide(box.end[d] - 1, domain[d]) - first[d] + 1;
  }
  Shape number = Shape::filled(box.dims(), 0);
  do {
    Shape shift = number;
    for (int d = 0; d < box.dims(); ++d) shift[d] = (first[d] + number[d]) * domain[d];
    f(intersect(box.relative_to(shift), Box::of(domain)), shift);
  } while (next_index(count, number));
}

/// A field whose indices are counted from others.
constexpr FieldWindow relative_to(FieldWindow field, const Shape& shift) {
  field.has = field.has.relative_to(shift);
  field.ghost_box = field.ghost_box.relative_to(shift);
  return field;
}

/// Plans several steps after one exchange, and sets the reach of the fields to that of all steps.
///
/// @param replaced  the number of fields, the first ones, that are replaced in each step
/// @param layout    of the fields
/// @throws Error if a step has fewer elements than the fields that it replaces
CLEAVE_INLINE RepeatPlan plan_repeat(const char* name, StencilFields& fields, std::size_t replaced,
                                     int steps, const Layout& layout, const ErrorContext& context);

/// Reads what several steps need. Values beyond edges are left to the steps.
/// @collective every rank of the mesh
CLEAVE_INLINE void exchange_ghosts_of_steps(const char* name, StencilFields& fields,
                                            const Layout& layout, const MeshState& mesh);

}  // namespace cleave::inline v0::detail

#if !CLEAVE_COMPILED
#include <cleave/ops/stencil/repeat_plan_body.hpp>
#endif
