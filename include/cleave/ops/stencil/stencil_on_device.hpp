// A stencil in device code: one launch computes its blocks, the inner elements from the fields as
// they lie in memory, those around from small copies, which one launch per field fills. All
// elements are computed by the same code, so that their bits do not depend on the mesh.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/plain_tuple.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/ops/stencil/edges.hpp>
#include <cleave/ops/stencil/field_window.hpp>
#include <cleave/ops/stencil/stencil_rows.hpp>

namespace cleave::inline v0::detail {

/// The blocks of a stencil: the inner elements, and those at two sides of each dimension.
template <int Dims>
inline constexpr int most_blocks = 1 + 2 * Dims;

/// A strided array in memory of the device. @tparam T  const: read only
template <class T, int Dims>
struct ArrayOnDevice {
  T* first = nullptr;  ///< the element at `begin`
  index_t begin[Dims] = {};
  index_t strides[Dims] = {};

  ArrayOnDevice() = default;
  ArrayOnDevice(T* data, const Shape& from, const Shape& steps) : first(data) {
    for (int d = 0; d < Dims; ++d) begin[d] = from[d], strides[d] = steps[d];
  }

  CLEAVE_HOST_DEVICE T* at(const index_t* index) const {
    index_t place = 0;
    for (int d = 0; d < Dims; ++d) place += (index[d] - begin[d]) * strides[d];
    return first + place;
  }
};

/// Writes what is read at the indices of boxes: elements, ghosts, and values of edges.
template <class T, int Dims, class E>
struct FillOnDevice {
  static constexpr int dims = Dims;
  static constexpr int most_boxes = most_blocks<Dims>;

  E edges;
  EdgeKind kinds[Dims][2];
  unsigned wraps;
  index_t domain[Dims];
  index_t has_end[Dims];
  ArrayOnDevice<const T, Dims> elements;
  ArrayOnDevice<const T, Dims> ghosts;
  ArrayOnDevice<T, Dims> to[std::size_t(most_boxes)];

  FillOnDevice(const E& of, const FieldWindow& field, std::span<const FilledBox> boxes)
      : edges(of),
        wraps(field.wraps),
        elements(static_cast<const T*>(field.elements.data), field.has.begin,
                 field.elements.strides) {
    if (field.ghosts.data != nullptr)
      ghosts = {static_cast<const T*>(field.ghosts.data), field.ghost_box.begin,
                field.ghosts.strides};
    for (int d = 0; d < Dims; ++d) {
      domain[d] = field.domain[d], has_end[d] = field.has.end[d];
      for (int side = 0; side < 2; ++side) kinds[d][side] = field.edge(d, side);
    }
    for (std::size_t k = 0; k < boxes.size(); ++k)
      to[k] = {static_cast<T*>(boxes[k].to.data), boxes[k].box.begin, boxes[k].to.strides};
  }

  CLEAVE_HOST_DEVICE void operator()(int k, const index_t* index) const {
    index_t read[Dims];
    int edge = -1;
    bool is_own = true;
    for (int d = 0; d < Dims; ++d) {
      read[d] =
          resolved_index(kinds[d][0], kinds[d][1], (wraps >> d & 1u) != 0, domain[d], index[d]);
      if (edge < 0 && read[d] == before_first) edge = 2 * d;
      if (edge < 0 && read[d] == behind_last) edge = 2 * d + 1;
      is_own = is_own && read[d] >= elements.begin[d] && read[d] < has_end[d];
    }
    if (edge < 0) *to[k].at(index) = is_own ? *elements.at(read) : *ghosts.at(read);
    else *to[k].at(index) = edge_value<T, Dims>(edges, edge / 2, edge % 2, index);
  }
};

/// The arrays of a field for all blocks, or a number. @tparam S  a stencil, of which it is operand
/// I
template <class S, std::size_t I, class T, int Dims>
struct OperandOnDevice {
  ArrayOnDevice<const T, Dims> of_block[std::size_t(most_blocks<Dims>)];

  CLEAVE_HOST_DEVICE FieldAt<T, Dims> at(int k, const index_t* index) const {
    if constexpr (declares_stride<S>) {
      constexpr Stride stride = declared_stride<S, I>();
      index_t centre[Dims];
      for (int d = 0; d < Dims; ++d) {
        const DimMap map = stride.map(d);
        centre[d] = floor_divide(map.num * index[d], map.den);
      }
      return {of_block[k].at(centre), of_block[k].strides, index, 0};
    } else {
      return {of_block[k].at(index), of_block[k].strides, index, 0};
    }
  }
};
template <class S, std::size_t I, class T, int Dims>
struct OperandOnDevice<S, I, Number<T>, Dims> {
  T value{};

  CLEAVE_HOST_DEVICE T at(int, const index_t*) const { return value; }
};

/// A stencil with operands T, element types of fields or Numbers, and results R.
template <class S, int Dims, class Results, class Operands>
struct StencilOnDevice;
template <class S, int Dims, class... R, class... Operand>
struct StencilOnDevice<S, Dims, Types<R...>, Types<Operand...>> {
  static constexpr int dims = Dims;
  static constexpr int most_boxes = most_blocks<Dims>;

  S stencil;
  PlainTuple<Operand...> operands;
  PlainTuple<ArrayOnDevice<R, Dims>...> results;

  CLEAVE_HOST_DEVICE void operator()(int k, const index_t* index) const {
    compute(k, index, std::index_sequence_for<Operand...>{}, std::index_sequence_for<R...>{});
  }

 private:
  template <std::size_t... I, std::size_t... K>
  CLEAVE_HOST_DEVICE void compute(int k, const index_t* index, std::index_sequence<I...>,
                                  std::index_sequence<K...>) const {
    const auto value = stencil(item<I>(operands).at(k, index)...);
    if constexpr (is_tuple_of_results<std::remove_cvref_t<decltype(value)>>)
      ((*item<K>(results).at(index) = static_cast<R>(std::get<K>(value))), ...);
    else ((*item<K>(results).at(index) = static_cast<R>(value)), ...);
  }
};

/// Computes a stencil for the indices of a box on a device other than the host.
template <class Device>
class SweepOnDevice {
 public:
  SweepOnDevice(std::span<const FieldWindow> fields, const Box& results) : fields_(fields) {
    Box inner = results;
    for (const FieldWindow& field : fields) inner = field.inner(inner);
    if (inner.empty()) inner = results;
    const auto add = [&](const Box& block) {
      if (!block.empty()) blocks_.push_back(block);
    };
    add(inner);
    each_box_around(results, inner, add);
  }

  template <class S, int Dims, class R, class... Operand>
  void run(StencilOnDevice<S, Dims, R, Types<Operand...>> stencil) {
    std::size_t next = 0;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (set_blocks(static_cast<PlainItem<I, Operand>&>(stencil.operands).value, next), ...);
    }(std::index_sequence_for<Operand...>{});
    visit_boxes(kernels::On<Device>{}, S::name, stencil, std::span<const Box>(blocks_));
  }

 private:
  template <class S, std::size_t I, class T, int Dims>
  void set_blocks(OperandOnDevice<S, I, T, Dims>& operand, std::size_t& next) {
    const FieldWindow& field = fields_[next++];
    std::vector<FilledBox> copies;
    std::size_t count = 0;
    const auto is_there = [&](const Box& block) { return field.has.contains(field.window(block)); };
    for (const Box& block : blocks_)
      if (!is_there(block)) count += std::size_t(field.window(block).volume());
    storage_.push_back(allocate_bytes(Device{}, count * sizeof(T)));
    T* free = static_cast<T*>(storage_.back().get());
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      if (is_there(blocks_[k])) {
        operand.of_block[k] = {static_cast<const T*>(field.elements.data), field.has.begin,
                               field.elements.strides};
        continue;
      }
      const Box window = field.window(blocks_[k]);
      const View to = View::dense(free, dtype_of<T>(), window.extents());
      copies.push_back({window, to});
      operand.of_block[k] = {free, window.begin, to.strides};
      free += window.volume();
    }
    if (!copies.empty()) field.fill(field, copies);
  }
  template <class S, std::size_t I, class T, int Dims>
  void set_blocks(OperandOnDevice<S, I, Number<T>, Dims>&, std::size_t&) {}

  std::span<const FieldWindow> fields_;
  std::vector<Box> blocks_;
  std::vector<std::shared_ptr<void>> storage_;  ///< until the kernel is enqueued
};

/// Writes everything that is read of a field of T at the indices of boxes.
template <class T, int Dims, class Device, class E>
void fill_boxes(const FieldWindow& field, std::span<const FilledBox> boxes) {
  if constexpr (std::is_same_v<Device, Host>) {
    for (const FilledBox& one : boxes) field.copy(one.box, one.to);
  } else {
    std::vector<Box> visited;
    for (const FilledBox& one : boxes) visited.push_back(one.box);
    const E& of_domain = *static_cast<const E*>(field.of_domain);
    visit_boxes(kernels::On<Device>{}, "stencil", FillOnDevice<T, Dims, E>(of_domain, field, boxes),
                std::span<const Box>(visited));
  }
}

}  // namespace cleave::inline v0::detail
