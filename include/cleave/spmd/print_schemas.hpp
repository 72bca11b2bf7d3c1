// Found schemas as C++ source, to be pasted into a program.
#pragma once

#include <cstddef>
#include <string>

#include <cleave/placement/placement.hpp>
#include <cleave/spmd/find_schemas.hpp>
#include <cleave/spmd/graph.hpp>

namespace cleave::inline v0::spmd {

/// "spmd::schema(Shard<0>{}, Replicate{})" @pre there is no partial
inline std::string to_source(const Layout& layout) {
  std::string text = "spmd::schema(";
  for (int a = 0; a < layout.axes; ++a) {
    const Placement& p = layout[a];
    text += a > 0 ? ", " : "";
    text += p.shards() ? "Shard<" + std::to_string(int(p.dim)) + ">{}" : "Replicate{}";
  }
  return text + ")";
}

/// The constants `schemas` and `requests`, one line for each input and each node:
///
///     constexpr std::array schemas{
///         spmd::schema(Shard<0>{}, Replicate{}),  // x
///         spmd::schema(Replicate{}, Shard<1>{}),  // w
///     };
///     constexpr std::array requests{
///         spmd::Request{4, spmd::schema(Shard<0>{}, Shard<0>{})},  // matmul
///     };
///
/// `expand(with_requests(graph, requests), schemas)` is then the program that was found. Where
/// there are no requests, the second constant is omitted.
template <AnyGraph G>
std::string to_source(const FoundSchemas& found, const G& graph) {
  std::string text = "constexpr std::array schemas{\n";
  for (std::size_t i = 0; i < found.schemas.size(); ++i)
    text += "    " + to_source(found.schemas[i]) + ",  // " + graph.inputs[i].name + "\n";
  text += "};\n";
  if (found.requests.empty()) return text;
  text += "constexpr std::array requests{\n";
  for (const Request& request : found.requests)
    text += "    spmd::Request{" + std::to_string(request.node) + ", " + to_source(request.placed) +
            "},  // " + graph.nodes[std::size_t(request.node)].name + "\n";
  return text + "};\n";
}

}  // namespace cleave::inline v0::spmd
