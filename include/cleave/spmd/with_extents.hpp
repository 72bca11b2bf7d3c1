// Symbolic graphs and programs for given extents, to look at or to count, and after passes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/spmd/extent.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/remake.hpp>

namespace cleave::inline v0::spmd {

/// A symbol's name and its extent.
struct NamedExtent {
  std::string_view name;
  index_t extent = 0;
};

/// A symbolic graph or program for extents of its symbols: what a run with these extents uses.
///
///     const Program small = with_extents(program, {{"batch", 6}, {"sequence", 3}});
///     const index_t bytes = received_bytes(small, mesh.extents());
///
/// @throws Error if a symbol's extent is missing or does not meet its conditions; also any error of
///               the traced function for these extents
template <class X, std::size_t N>
  requires(AnyGraph<X> || AnyProgram<X>)
auto with_extents(const X& of, const NamedExtent (&extents)[N]) {
  Shape values = Shape::filled(of.symbols.count, -1);
  for (const NamedExtent& given : extents) {
    const int symbol = of.symbols.find(given.name);
    if (symbol < 0)
      throw Error("spmd::with_extents", "there is no symbol " + std::string(given.name));
    if (const Symbol& named = of.symbols.of[std::size_t(symbol)]; !named.allows(given.extent))
      detail::throw_refused("spmd::with_extents", named, given.extent);
    values[symbol] = given.extent;
  }
  for (int i = 0; i < values.dims; ++i)
    if (values[i] < 0)
      throw Error("spmd::with_extents", std::string("the extent of ") +
                                            of.symbols.of[std::size_t(i)].name + " is missing");
  return detail::remade(of, values);
}

/// A program after passes. If its extents contain symbols, the passes are applied to the program
/// for a sample of extents, and by a Runner to those for the extents of runs.
///
///     Runner runner(with_passes(program, [&](const auto& p) { return coalesce(p, extents); }),
///     mesh);
///
/// @param passes  a function from a program without symbols to a program, copied
/// @throws Error  what passes throw
template <AnyProgram P, class F>
constexpr Program with_passes(const P& program, const F& passes) {
  if (!is_symbolic(program)) return passes(program);
  if (!std::is_constant_evaluated() && detail::BoundSymbols::innermost() != nullptr)
    return passes(detail::remaking(program)());
  Program made;
  const auto fill = [&] { made = passes(detail::without_symbols(program)); };
  if (std::is_constant_evaluated()) fill();
  else detail::with_bound(program.symbols, program.symbols.samples(), fill);
  detail::copy_symbols(program, made);
  if (!std::is_constant_evaluated())
    made.remake =
        Remake<Program>([of = detail::remaking(program), passes] { return Program(passes(of())); });
  return made;
}

}  // namespace cleave::inline v0::spmd
