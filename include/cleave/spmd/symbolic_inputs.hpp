// The inputs of a program whose extents contain symbols, and what the tensors of a run give these.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/engine/call_context.hpp>
#include <cleave/spmd/extent.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/run_checks.hpp>

namespace cleave::inline v0::spmd::detail {

class SymbolicInputs {
 public:
  template <AnyProgram P>
  explicit SymbolicInputs(const P& of)
      : symbols_(of.symbols), extents_(of.symbolic.begin(), of.symbolic.end()) {
    for (int i = 0; i < of.inputs; ++i) {
      names_.push_back(of.code[std::size_t(i)].name);
      inputs_.push_back(of.values[std::size_t(i)]);
    }
  }

  const Symbols& symbols() const { return symbols_; }

  /// The extents that tensors give the symbols. Ranks outside the mesh do not know extents.
  /// @throws Error if a tensor is not what the program takes, or extents do not fit
  Shape read(std::span<const OperandRef> x, const MeshState& mesh) const {
    require_count(inputs_.size(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      PlacedValue expected = inputs_[i];
      for (int d = 0; d < expected.shape.dims && d < x[i].dims; ++d)
        if (find(i, d) != nullptr) expected.shape[d] = x[i].shape[d];
      if (!accepts(expected, x[i], mesh))
        throw_refused(i, names_[i], expected, x[i], mesh, text(i));
    }
    return mesh.is_member() ? solve(x, mesh) : symbols_.samples();
  }

 private:
  const SymbolicExtent* find(std::size_t input, int dim) const {
    for (const SymbolicExtent& e : extents_)
      if (std::size_t(e.input) == input && e.dim == dim) return &e;
    return nullptr;
  }

  /// "[batch, 64]": the extents of an input.
  std::string text(std::size_t input) const {
    std::string text = "[";
    const Shape& shape = inputs_[input].shape;
    for (int d = 0; d < shape.dims; ++d) {
      const SymbolicExtent* const e = find(input, d);
      text += (d > 0 ? ", " : "") +
              (e != nullptr ? to_string(e->extent, symbols_) : std::to_string(shape[d]));
    }
    return text + "]";
  }

  /// The extent of each symbol.
  Shape solve(std::span<const OperandRef> x, const MeshState& mesh) const {
    Shape result = Shape::filled(symbols_.count, 0);
    std::array<int, std::size_t(max_symbols)> source{};
    for (unsigned known = 0;;) {
      const Determined next = next_determined(extents_, symbols_.count, known);
      if (next.place < 0) break;
      const SymbolicExtent& e = extents_[std::size_t(next.place)];
      const index_t extent = x[std::size_t(e.input)].shape[e.dim];
      const index_t factor = e.extent.factor[std::size_t(next.symbol)];
      const index_t rest = extent - e.extent.at(result);  // where unknown symbols are 0
      if (rest % factor != 0 || rest / factor < 0)
        throw Error("spmd::run", described(e, extent), context(x, mesh));
      result[next.symbol] = rest / factor;
      source[std::size_t(next.symbol)] = e.input;
      known |= 1u << next.symbol;
    }
    for (const SymbolicExtent& e : extents_)
      if (const index_t extent = x[std::size_t(e.input)].shape[e.dim];
          extent != e.extent.at(result))
        throw Error("spmd::run", described(e, extent) + reasons(e, result, source),
                    context(x, mesh));
    for (int i = 0; i < symbols_.count; ++i)
      if (const Symbol& symbol = symbols_.of[std::size_t(i)]; !symbol.allows(result[i]))
        throw_refused("spmd::run", symbol, result[i], context(x, mesh));
    return result;
  }

  static ErrorContext context(std::span<const OperandRef> inputs, const MeshState& mesh) {
    std::string shapes;
    for (const OperandRef& x : inputs)
      shapes += (shapes.empty() ? "" : ", ") +
                cleave::to_string(cleave::detail::shape_at(x.shape, x.dims));
    return {.shapes = shapes, .mesh = mesh.describe(), .rank = mesh.world_rank()};
  }
  /// "input 'x' has extent 7 in dimension 0, but the program takes 2*batch"
  std::string described(const SymbolicExtent& e, index_t extent) const {
    return named(e.input) + " has extent " + std::to_string(extent) + " in dimension " +
           std::to_string(e.dim) + ", but the program takes " + to_string(e.extent, symbols_);
  }
  std::string named(int input) const {
    return std::string("input '") + names_[std::size_t(input)] + "'";
  }
  /// " = 12, as batch is 6 by input 'x'"
  std::string reasons(const SymbolicExtent& e, const Shape& extents,
                      const std::array<int, std::size_t(max_symbols)>& source) const {
    std::string text = " = " + std::to_string(e.extent.at(extents));
    const char* joint = ", as ";
    for (int i = 0; i < symbols_.count; ++i)
      if (e.extent.factor[std::size_t(i)] != 0)
        text += std::exchange(joint, " and ") + std::string(symbols_.of[std::size_t(i)].name) +
                " is " + std::to_string(extents[i]) + " by " + named(source[std::size_t(i)]);
    return text;
  }

  Symbols symbols_;
  std::vector<SymbolicExtent> extents_;
  std::vector<PlacedValue> inputs_{};  ///< for a sample of extents
  std::vector<const char*> names_{};   ///< of the inputs
};

}  // namespace cleave::inline v0::spmd::detail
