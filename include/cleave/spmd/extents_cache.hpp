// Interpreters of a program: one, or, if extents contain symbols, one for each set of extents that
// has been run, so that what depends on extents is planned once for them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/engine/call_context.hpp>
#include <cleave/spmd/interpreter.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/remake.hpp>
#include <cleave/spmd/run_checks.hpp>
#include <cleave/spmd/symbolic_inputs.hpp>

namespace cleave::inline v0::spmd::detail {

template <class Device>
class ExtentsCache {
 public:
  /// The most interpreters that are kept: each takes about a kilobyte per instruction. They share
  /// the memory of values.
  static constexpr std::size_t limit = 64;

  /// @param kernels  of a program without symbols
  /// @throws Error as Interpreter does
  template <AnyProgram P>
  ExtentsCache(const P& of, const MeshState& on, std::span<const FusedKernel> kernels)
      : mesh_(&on), inputs_(std::size_t(of.inputs)), outputs_(of.outputs.size()) {
    if (is_symbolic(of)) {
      require_fit(of, Device::name, on);
      require_remake(of);
      if constexpr (may_be_symbolic<P>) prepare_symbolic(of);
    } else {
      entries_.push_back({{}, std::make_unique<Interpreter<Device>>(of, on, kernels)});
    }
  }

  const MeshState& mesh() const noexcept { return *mesh_; }
  std::size_t inputs() const noexcept { return inputs_; }
  std::size_t outputs() const noexcept { return outputs_; }
  int compiled_runs() const {
    return entries_.empty() ? 0 : entries_.back().interpreter->compiled_runs();
  }
  /// Of the latest extents.
  index_t peak_bytes() const noexcept {
    return entries_.empty() ? 0 : entries_.back().interpreter->peak_bytes();
  }

  /// The interpreter for the extents of inputs.
  /// @throws Error if the extents of the inputs do not fit, or an operation refuses them
  Interpreter<Device>& select(std::span<const OperandRef> inputs) {
    if (!symbolic_) return *entries_.back().interpreter;
    const Shape extents = symbolic_->read(inputs, *mesh_);
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.extents == extents; });
    if (found != entries_.end()) {
      std::rotate(found, found + 1, entries_.end());  // the latest is the last
      return *entries_.back().interpreter;
    }
    auto made = with_bound(symbolic_->symbols(), extents, [&] {
      return std::make_unique<Interpreter<Device>>(remake_(), *mesh_);
    });
    if (entries_.size() == limit) entries_.erase(entries_.begin());
    for (const Entry& entry : entries_) made->share_block(*entry.interpreter);
    entries_.push_back({extents, std::move(made)});
    return *entries_.back().interpreter;
  }

 private:
  struct Entry {
    Shape extents;
    std::unique_ptr<Interpreter<Device>> interpreter;
  };

  template <AnyProgram P>
  void prepare_symbolic(const P& of) {
    remake_ = Remake<Program>(of.remake);
    symbolic_.emplace(of);
  }

  const MeshState* mesh_;
  std::size_t inputs_, outputs_;
  std::vector<Entry> entries_{};  ///< the latest one last; without symbols, one
  std::optional<SymbolicInputs> symbolic_{};
  Remake<Program> remake_{};
};

}  // namespace cleave::inline v0::spmd::detail
