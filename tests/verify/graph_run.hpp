// Runs a traced program node by node, on one rank or under placements given as values: one
// instantiation of an operation covers all placements.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <cleave/ops/engine/run_op.hpp>
#include <cleave/redistribute/run_plan.hpp>
#include <cleave/rules/solver.hpp>
#include <cleave/spmd/graph.hpp>

namespace cleave::testing {

/// A value as stored on this rank.
struct Held {
  DType dtype{};
  Shape shape{};    ///< global extents
  Layout layout{};  ///< without axes: a local tensor
  Shape extents{};  ///< on this rank
  Shape strides{};
  std::shared_ptr<void> storage{};
  void* data = nullptr;
};

/// The rows of partials that calls have used, as a rule and the number of the row.
using RowsUsed = std::set<std::pair<const Rule*, int>>;

class GraphRun {
 public:
  /// @param mesh  null: runs on this rank alone
  /// @param used  collects the rows used, if not null
  GraphRun(const spmd::Graph& graph, const MeshState* mesh, RowsUsed* used = nullptr)
      : graph_(graph), mesh_(mesh), used_(used), values_(graph.values.size()) {}

  /// @collective every rank of the mesh
  std::vector<Held> operator()(const std::vector<Held>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      values_[std::size_t(graph_.inputs[i].value)] = inputs[i];
    run_nodes();
    std::vector<Held> outputs;
    for (const spmd::Output& output : graph_.outputs)
      outputs.push_back(values_[std::size_t(output.value)]);
    return outputs;
  }

  /// x redistributed to other placements.
  /// @collective every rank of the mesh
  static Held moved(const Held& x, const Layout& to, const MeshState& mesh) {
    Held y = x;
    y.layout = to;
    if (to == x.layout) return y;
    const redistribution::Block block = redistribution::run<Host>(
        nullptr, x.layout, to, {x.storage, View{x.data, x.dtype, x.extents, x.strides}},
        {mesh, x.shape, "verify"});
    y.storage = block.storage;
    y.data = block.view.data;
    y.extents = block.view.extents;
    y.strides = block.view.strides;
    return y;
  }

 private:
  bool asks(const spmd::Node& node) const {
    return mesh_ != nullptr && (node.asks || node.like >= 0);
  }
  Layout asked(const spmd::Node& node) const {
    return node.like < 0
               ? node.asked
               : values_[std::size_t(node.like)].layout.with_partials_as(Placement::replicate());
  }

  void run_nodes() {
    for (const spmd::Node& node : graph_.nodes) {
      if (node.is_placement) place(node);
      else if (node.body != nullptr) open(node);
      else call(node);
    }
  }

  /// Runs the nodes of a composite that traces keep as one node.
  void open(const spmd::Node& node) {
    spmd::Graph body;
    std::array<int, std::size_t(max_operands)> operand{};
    std::array<int, std::size_t(max_results)> result{};
    for (int i = 0; i < node.operands(); ++i)
      operand[std::size_t(i)] =
          body.add(spmd::operand_value(graph_.values[std::size_t(node.operand[std::size_t(i)])]));
    node.body(body, node.attributes, operand.data(), result.data());
    GraphRun run(body, mesh_, used_);
    for (int i = 0; i < node.operands(); ++i)
      run.values_[std::size_t(operand[std::size_t(i)])] =
          values_[std::size_t(node.operand[std::size_t(i)])];
    run.run_nodes();
    for (int k = 0; k < node.results(); ++k)
      values_[std::size_t(node.first + k)] = run.values_[std::size_t(result[std::size_t(k)])];
  }

  void place(const spmd::Node& node) {
    const Held& x = values_[std::size_t(node.operand[0])];
    values_[std::size_t(node.first)] = asks(node) ? moved(x, asked(node), *mesh_) : x;
  }

  /// Makes a scalar tensor, which views may share.
  void make_constant(Held& x, const spmd::Value& known) const {
    const std::size_t bytes = size_of(known.dtype);
    x.dtype = known.dtype;
    x.layout.axes = mesh_ != nullptr ? mesh_->extents().dims : 0;
    x.storage = allocate_bytes(Host{}, bytes);
    x.data = x.storage.get();
    std::memcpy(x.data, graph_.constants[std::size_t(known.constant)].bytes.data(), bytes);
  }

  OperandRef operand(int value, Layout& layout, bool of_view) {
    Held& x = values_[std::size_t(value)];
    const spmd::Value& known = graph_.values[std::size_t(value)];
    if (known.constant >= 0 && of_view) {
      make_constant(x, known);
    } else if (known.constant >= 0) {
      layout.axes = mesh_ != nullptr ? mesh_->extents().dims : 0;
      const auto& bytes = graph_.constants[std::size_t(known.constant)].bytes;
      return {{const_cast<std::byte*>(bytes.data()), nullptr, nullptr, 0},
              nullptr,
              known.dtype,
              nullptr,
              nullptr,
              nullptr};
    }
    layout = x.layout;
    return {{x.data, x.extents.values.data(), x.strides.values.data(), x.shape.dims},
            x.shape.values.data(),
            x.dtype,
            mesh_ != nullptr ? &x.layout : nullptr,
            mesh_,
            &x.storage};
  }

  void call(const spmd::Node& node) {
    const detail::OpInfo& info = *node.op;
    const Rule& rule = *info.rule;
    OperandLayouts layouts{};
    std::array<OperandRef, std::size_t(max_operands)> in;
    for (int i = 0; i < rule.operands; ++i)
      in[std::size_t(i)] =
          operand(node.operand[std::size_t(i)], layouts[std::size_t(i)], info.is_view);

    std::array<detail::RawResult, std::size_t(max_results)> out;
    for (int k = 0; k < rule.results; ++k) {
      Held& y = values_[std::size_t(node.first + k)];
      y.dtype = info.dtype[std::size_t(k)];
      y.shape.dims = y.extents.dims = y.strides.dims = rule.result[std::size_t(k)].dims;
      out[std::size_t(k)] = {nullptr, nullptr, y.shape.values.data(), y.extents.values.data(),
                             y.strides.values.data()};
    }
    const void* const op = node.attributes.bytes.data();
    const Shape fresh = spmd::fresh_extents(info, graph_.values, std::size_t(node.first));
    if (mesh_ == nullptr) {
      detail::compute<Host>(detail::CallContext(info, in.data()), op, fresh, in.data(), nullptr,
                            out.data());
    } else {
      const Layout wanted = asks(node) ? asked(node) : Layout{};
      const Solution solution = solve(rule, layouts, asks(node) ? &wanted : nullptr);
      note_rows(rule, solution);
      detail::PlacedCall placed{&info, &solution};
      for (int i = 0; i < rule.operands; ++i)
        if (in[std::size_t(i)].mesh != nullptr &&
            !(layouts[std::size_t(i)] == solution.required[std::size_t(i)]))
          placed.moves |= 1u << i;
      const detail::RedistributionSpec spec{solution.computed[0], solution.result[0], nullptr};
      placed.result_moves = !(spec.source == spec.target);
      placed.result_spec = &spec;
      detail::run_placed<Host>(placed, op, fresh, in.data(), out.data());
      for (int k = 0; k < rule.results; ++k)
        values_[std::size_t(node.first + k)].layout = solution.result[std::size_t(k)];
    }
    for (int k = 0; k < rule.results; ++k) {
      values_[std::size_t(node.first + k)].storage = out[std::size_t(k)].storage;
      values_[std::size_t(node.first + k)].data = out[std::size_t(k)].data;
    }
  }

  void note_rows(const Rule& rule, const Solution& solution) {
    if (used_ == nullptr) return;
    for (int a = 0; a < mesh_->extents().dims; ++a)
      for (int r = 0; r < rule.rows; ++r) {
        bool same = true;
        for (int i = 0; i < rule.operands; ++i) {
          const std::int8_t entry = rule.row[std::size_t(r)].operand[std::size_t(i)];
          same = same && solution.required[std::size_t(i)][a] ==
                             (entry == Rule::replicate ? Placement::replicate()
                                                       : Placement::partial(ReduceOp(entry)));
        }
        if (same) used_->insert({&rule, r});
      }
  }

  const spmd::Graph& graph_;
  const MeshState* mesh_;
  RowsUsed* used_;
  std::vector<Held> values_;
};

}  // namespace cleave::testing
