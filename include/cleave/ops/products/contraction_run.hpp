// Runs the plan of a product of several arrays: each array is redistributed whole, or in panels
// that are multiplied one after the other, each while the next one arrives.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cleave/async/async.hpp>
#include <cleave/kernels/contract.hpp>
#include <cleave/ops/engine/read_operands.hpp>
#include <cleave/ops/engine/start_exchange.hpp>
#include <cleave/ops/products/contract_pair.hpp>
#include <cleave/ops/products/contraction_plan.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/redistribute/redistribute_local.hpp>
#include <cleave/redistribute/run_transfers.hpp>

namespace cleave::inline v0::detail {

/// Runs a plan.
template <class T, class Device>
class ContractionRun {
 public:
  /// @param mesh  null: local tensors
  ContractionRun(const MeshState* mesh, const OperandRef* in, int operands) : mesh_(mesh) {
    for (int i = 0; i < operands; ++i)
      arrays_.push_back({block_of(in[i]), in[i].layout != nullptr ? *in[i].layout : Layout{},
                         shape_at(in[i].shape, in[i].dims)});
  }

  /// @collective every rank of the mesh
  redistribution::Block result(const ContractionPlan& plan) {
    for (const ContractionStep& step : plan.steps) multiply(step);
    move(arrays_.back(), plan.result);
    return std::move(arrays_.back().block);
  }

 private:
  struct Array {
    redistribution::Block block;
    Layout layout;
    Shape shape;
  };

  void move(Array& array, const Layout& to) const {
    if (mesh_ == nullptr || array.layout == to) return;
    array.block = redistribution::run<Device>(nullptr, array.layout, to, std::move(array.block),
                                              {*mesh_, array.shape, "einsum"});
    array.layout = to;
  }

  void multiply(const ContractionStep& step) {
    Array& x = arrays_[std::size_t(step.array[0])];
    Array& w = arrays_[std::size_t(step.array[1])];
    if (step.panel == 0) move(x, step.to[0]), move(w, step.to[1]);
    const Shape extents =
        mesh_ == nullptr ? step.shape
                         : redistribution::own_extents({step.result}, {*mesh_, step.shape, ""});
    Array y{redistribution::allocate<Device>(dtype_of<T>(), extents), step.result, step.shape};
    if (step.panel == 0) multiply(step, y.block.view, {x.block.view, w.block.view});
    else multiply_panels(step, y.block.view);
    x.block = w.block = {};
    arrays_.push_back(std::move(y));
  }

  void multiply(const ContractionStep& step, const View& y, const std::array<View, 2>& x,
                bool add = false) const {
    if (!is_dry())
      contract(kernels::On<Device>{}, contraction_of(step.factors), kernels::elements_of<T>(y),
               kernels::elements_of<const T>(x[0]), kernels::elements_of<const T>(x[1]), add);
  }

  /// Exchanges and multiplies some of a rank's indices of a letter at a time; the next panels
  /// arrive meanwhile. Where y lacks the letter, products are added.
  ///
  /// Ranks with different parts of y begin at different panels, so that those of one panel do not
  /// all receive from one rank (as in L. E. Cannon's algorithm, 1969).
  void multiply_panels(const ContractionStep& step, const View& y) {
    Rule rule;
    read_factors(rule, step.factors);
    const int f = factor_index(rule, step.letter), kept = rule.result[0].dim_of(f);
    PanelOf panel{{}, step.panel, 1};
    for (std::size_t i = 0; i < 2; ++i) {
      Array& array = arrays_[std::size_t(step.array[i])];
      panel.dim[i] = rule.operand[i].dim_of(f);
      if (panel.dim[i] < 0 || lies_as(array, step.to[i])) {
        move(array, step.to[i]);
        continue;
      }
      const index_t longest = redistribution::longest_extents({step.to[i]}, array.shape,
                                                              mesh_->extents())[panel.dim[i]];
      panel.count = (longest + step.panel - 1) / step.panel;
    }
    panel.result = step.result;
    Panels next = start_panels(step, panel, 0);
    for (index_t turn = 0; turn < panel.count; ++turn) {
      const Panels x = std::move(next);
      next = turn + 1 < panel.count ? start_panels(step, panel, turn + 1) : Panels{};
      const std::array<View, 2> views{x[0].wait().view, x[1].wait().view};
      if (kept >= 0) {
        const IndexRange own = panel.indices(mesh_->extents(), mesh_->coordinate(), turn);
        multiply(step, along(y, kept, own), views);
      } else {
        multiply(step, y, views, turn > 0);
      }
    }
  }

  /// Which of its indices of a letter a rank multiplies in a turn.
  struct PanelOf {
    std::array<int, 2> dim{};  ///< of the letter in both arrays, or -1
    index_t extent = 0;
    index_t count = 0;
    Layout result{};

    IndexRange indices(const Shape& mesh, const Shape& at, index_t turn) const {
      index_t place = 0, longest = 1;
      for (int a = 0; a < result.axes; ++a)
        if (result[a].shards()) place += at[a], longest = std::max(longest, mesh[a]);
      const index_t begin = (turn + place % longest * count / longest) % count * extent;
      return {begin, begin + extent};
    }
  };

  bool lies_as(const Array& array, const Layout& to) const {
    return redistribution::without_unit_axes(array.layout, mesh_->extents()) ==
           redistribution::without_unit_axes(to, mesh_->extents());
  }

  /// An array as it is multiplied, which may still have to arrive.
  struct Panel {
    redistribution::Block block{};
    std::optional<Async<bool>> arrival{};

    const redistribution::Block& wait() const {
      if (arrival) arrival->wait();
      return block;
    }
  };
  using Panels = std::array<Panel, 2>;

  Panels start_panels(const ContractionStep& step, const PanelOf& panel, index_t turn) const {
    return {start_panel(step, 0, panel, turn), start_panel(step, 1, panel, turn)};
  }

  /// The panel of an array, if it has the letter; else all of it.
  Panel start_panel(const ContractionStep& step, std::size_t i, const PanelOf& panel,
                    index_t turn) const {
    using namespace redistribution;
    const Array& array = arrays_[std::size_t(step.array[i])];
    const int d = panel.dim[i];
    if (d < 0) return {array.block};
    const Shape &mesh = mesh_->extents(), &at = mesh_->coordinate();
    const IndexRange own = panel.indices(mesh, at, turn);
    if (array.layout == step.to[i]) return {{array.block.storage, along(array.block.view, d, own)}};
    const Context context{*mesh_, array.shape, "einsum"};
    const Step move = exchange_step(array.layout, step.to[i], array.shape.dims);
    Box part = Box::of(own_extents(move.to, context));
    part.begin[d] = std::min(own.begin, part.end[d]), part.end[d] = std::min(own.end, part.end[d]);
    Call call{CollectiveKind::exchange, {}, move.axes, array.shape.product(), array.block.view};
    call.result = allocate<Device>(dtype_of<T>(), part.extents());
    const auto whole = mesh_->cache<TransferCache>().transfers(move, array.shape, *mesh_);
    const auto parts = std::make_shared<redistribution::Transfers>();
    for (const Transfer& t : whole->sends)
      add_within(parts->sends, t, d, panel.indices(mesh, mesh_->member(move.axes, t.peer), turn));
    for (const Transfer& t : whole->receives) add_within(parts->receives, t, d, own);
    call.transfers = parts;
    return {call.result, start_exchange<Device>(call, context)};
  }

  /// Adds the part of a transfer that fills the indices of dimension d of the receiver's result.
  static void add_within(std::vector<Transfer>& list, Transfer t, int d, const IndexRange& within) {
    const index_t begin = std::max(t.destination.begin[d], within.begin);
    const index_t end = std::min(t.destination.end[d], within.end);
    if (begin >= end) return;
    t.source.begin[d] += begin - t.destination.begin[d];
    t.source.end[d] = t.source.begin[d] + end - begin;
    t.destination.begin[d] = begin - within.begin, t.destination.end[d] = end - within.begin;
    list.push_back(t);
  }

  /// The elements of those of the indices that there are.
  static View along(const View& view, int d, const IndexRange& indices) {
    Box box = Box::of(view.extents);
    box.begin[d] = std::min(indices.begin, box.end[d]);
    box.end[d] = std::min(indices.end, box.end[d]);
    return view[box];
  }

  const MeshState* mesh_;
  std::vector<Array> arrays_;
};

}  // namespace cleave::inline v0::detail
