// Names of a program's outputs.
//
//     return std::tuple(named("loss", loss), named("model", model));
//     ..
//     const Layout layout = output_schema(program, "loss");
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/ops/engine/operand.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/spmd/leaves.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/traced.hpp>

namespace cleave::inline v0::spmd {

/// A result of a traced function that has a name. @see named
template <class X>
struct Named {
  const char* name;
  X value;
};
template <class X>
inline constexpr bool is_named = false;
template <class X>
inline constexpr bool is_named<Named<X>> = true;

/// Gives a result of a traced function a name, which outputs of programs keep.
///
/// @param name  lives as long as the programs that are made of the trace: a literal
/// @param x     a traced value; or a module, whose outputs have dotted names below it:
///              "model.layers.0.up.weight"
/// @return      in calls on tensors: x
template <class X>
constexpr auto named(const char* name, X x) {
  constexpr bool is_value = cleave::detail::is_traced<cleave::detail::innermost_t<X>>;
  if constexpr (is_value || requires { requires LeavesOf<X>::is_traced; })
    return Named<X>{name, std::move(x)};
  else return x;
}

/// The number of the output with a name, in the order in which the function returns them.
/// @throws Error if the program has no such output, or several
template <AnyProgram P>
constexpr std::size_t output_number(const P& program, std::string_view name) {
  std::size_t found = program.outputs.size();
  bool is_unique = true;
  for (std::size_t k = 0; k < program.outputs.size(); ++k)
    if (program.outputs[k].name == name) {
      is_unique = found == program.outputs.size();
      found = k;
    }
  if (found < program.outputs.size() && is_unique) return found;
  std::string names;
  for (const Output& output : program.outputs)
    if (*output.name) names += (names.empty() ? "'" : ", '") + std::string(output.name) + "'";
  throw Error("spmd::output_number", std::string(is_unique ? "no output" : "more than one output") +
                                         " is named '" + std::string(name) + "'; the program's " +
                                         "names are " + (names.empty() ? "none" : names));
}

/// The placements of the output with a name. @see output_schemas
/// @throws Error if the program has no such output, or several
template <AnyProgram P>
constexpr Layout output_schema(const P& program, std::string_view name) {
  return program.values[std::size_t(program.outputs[output_number(program, name)].value)].layout;
}

}  // namespace cleave::inline v0::spmd
