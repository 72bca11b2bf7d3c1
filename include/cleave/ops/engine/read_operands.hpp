// The operands of an operation that reads more of them than the rank's own parts: in place of each
// such part the box that this rank's part of the result reads.
#pragma once

#include <array>
#include <cstddef>

#include <cleave/ops/engine/call_context.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/read_boxes.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::detail {

/// The local elements of an operand.
inline redistribution::Block block_of(const OperandRef& operand) {
  return {operand.storage != nullptr ? *operand.storage : nullptr,
          View{operand.data, operand.dtype, shape_at(operand.extents, operand.dims),
               shape_at(operand.strides, operand.dims)}};
}

/// What the first result of a call reads of operand i. Dimensions that it does not read beyond the
/// own part stay as they are, whether or not the result has them.
///
/// @param shape  global extents of the result
inline redistribution::Needs needs_of_operand(const CallContext& call, const void* op,
                                              const OperandRef* in, int i, const Layout& computed,
                                              const index_t* shape) {
  const Rule& rule = *call.info.rule;
  const OperandRef& x = in[i];
  redistribution::Needs needs{{*x.layout}, {*x.layout}, shape_at(x.shape, x.dims), {}};
  needs.result_shape = needs.operand_shape;
  for (int d = 0; d < x.dims; ++d) {
    const int f = rule.operand[std::size_t(i)].factor[std::size_t(d)];
    const int reader = rule.reader[std::size_t(f)];
    if (reader < 0) continue;
    const int there = rule.result[0].dim_of(reader);
    needs.result_shape[d] = shape[there];
    needs.maps[std::size_t(d)] = call.info.read_map(op, i, d, in);
    for (int a = 0; a < computed.axes; ++a)
      if (computed[a].shards(there)) needs.result.layout[a] = computed[a].along(d);
  }
  return needs;
}

/// Whether an operation reads elements beyond the edges of its operand that it makes.
inline bool extends_operand(const CallContext& call, const void* op) {
  return call.info.extends_operand != nullptr && call.info.extends_operand(op);
}

/// Reads what a call needs. An operand that no axis of several ranks shards along a dimension that
/// is read stays as it is, whatever the indices.
template <class Device>
class ReadOperands {
 public:
  /// @param in  the operands with the required placements, not aligned
  /// @collective every rank of the mesh
  ReadOperands(const CallContext& call, const void* op, const OperandRef* in,
               const Layout* computed, const index_t* shape) {
    const int count = call.info.rule->operands;
    const bool extends = extends_operand(call, op);
    std::array<redistribution::Needs, std::size_t(max_operands)> needs;
    std::array<redistribution::BoxRead, std::size_t(max_operands)> reads;
    std::size_t reading = 0;
    for (int i = 0; i < count; ++i) {
      const auto at = std::size_t(i);
      operands_[at] = in[i];
      boxes_[at] = local_box(in[i].mesh, in[i].layout, shape_at(in[i].shape, in[i].dims));
      if (in[i].mesh == nullptr && extends) extend_local(call, op, in, shape);
      if (in[i].mesh == nullptr || !call.mesh->is_member()) continue;
      const MeshState& mesh = *call.mesh;
      needs[at] = needs_of_operand(call, op, in, i, *computed, shape);
      if (mesh.size(redistribution::axes_of(needs[at])) == 1 && !extends) continue;
      const Box needed = needs[at].box(mesh.extents(), mesh.coordinate());
      allocate(call, at, in[i].dtype, needed, extends);
      reads[reading++] = {&needs[at], block_of(in[i]).view, read_[at].view};
      take(at, needs[at], needed, extends);
    }
    if (reading > 0)
      redistribution::read_boxes<Device>(call.info.name, {reads.data(), reading}, *call.mesh);
  }
  ReadOperands(const ReadOperands&) = delete;  // points into itself

  const OperandRef* data() const { return operands_.data(); }
  /// The global indices of the elements of each operand.
  const Box* boxes() const { return boxes_.data(); }

 private:
  void allocate(const CallContext& call, std::size_t at, DType dtype, const Box& needed,
                bool extends) {
    read_[at] = redistribution::allocate<Device>(dtype, needed.extents());
    const View& all = read_[at].view;
    if (extends)
      call.info.fill_beyond({all.data, all.extents.begin(), all.strides.begin(), all.extents.dims});
  }

  /// Copies the only operand, which is local, into a box with what lies beyond its edges.
  void extend_local(const CallContext& call, const void* op, const OperandRef* in,
                    const index_t* shape) {
    OperandRef x = in[0];
    const Layout none;
    x.layout = &none;
    const redistribution::Needs needs = needs_of_operand(call, op, &x, 0, none, shape);
    const Box needed = needs.box({}, {}), there = intersect(needed, Box::of(needs.operand_shape));
    allocate(call, 0, x.dtype, needed, true);
    strided_copy(Device{}, block_of(x).view[there], read_[0].view[there.relative_to(needed.begin)]);
    take(0, needs, needed, true);
  }

  /// Makes the part of the read box that exists the operand.
  void take(std::size_t at, const redistribution::Needs& needs, const Box& needed, bool extends) {
    Box domain = Box::of(needs.operand_shape);
    for (int d = 0; d < domain.dims(); ++d)
      if (extends || is_periodic(needs.maps[std::size_t(d)].beyond))
        domain.begin[d] = needed.begin[d], domain.end[d] = needed.end[d];
    boxes_[at] = intersect(needed, domain);
    views_[at] = read_[at].view[boxes_[at].relative_to(needed.begin)];
    operands_[at].data = views_[at].data;
    operands_[at].extents = views_[at].extents.begin();
    operands_[at].strides = views_[at].strides.begin();
    operands_[at].storage = &read_[at].storage;
  }

  std::array<OperandRef, std::size_t(max_operands)> operands_;
  std::array<redistribution::Block, std::size_t(max_operands)> read_;
  std::array<View, std::size_t(max_operands)> views_;
  std::array<Box, std::size_t(max_operands)> boxes_;
};

}  // namespace cleave::inline v0::detail
