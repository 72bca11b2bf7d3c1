// Factories as nodes of a graph: operations without operands. Each rank computes its own part,
// under whatever placements the users of the result require.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/random_state.hpp>
#include <cleave/kernels/distributions.hpp>
#include <cleave/kernels/host/map_indexed.hpp>
#include <cleave/ops/engine/op_info.hpp>
#include <cleave/ops/engine/take_draw.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::spmd::detail {

/// Equal elements.
template <class T>
struct Filled {
  T value{};
};

/// first, first + 1, ..
template <class T>
struct Counted {
  index_t first = 0;

  CLEAVE_HOST_DEVICE T operator()(index_t i) const { return T(accumulator_t<T>(first + i)); }
};

/// The identity matrix.
template <class T>
struct Diagonal {
  index_t extent = 0;

  CLEAVE_HOST_DEVICE T operator()(index_t i) const { return T(i / extent == i % extent ? 1 : 0); }
};

/// Numbers of a distribution.
template <class F>
struct Drawn {
  F distribution;
  RandomState state{};  ///< its offset is relative to that of the current run
};

/// Makes a rank's part of an array.
/// @param task  `in` describes the result, `box` the global indices of the part
template <class T, class Device, class F>
void make_part(const F& f, const Task& task, const kernels::Strided<T>& y) {
  constexpr kernels::On<Device> on;
  map_indexed(on, f, *task.box, cleave::detail::shape_at(task.in->shape, task.in->dims), y);
}
template <class T, class Device>
void make_part(const Filled<T>& f, const Task&, const kernels::Strided<T>& y) {
  strided_fill(Device{}, View{y.data, dtype_of<T>(), y.extents, y.strides}, f.value);
}
template <class T, class Device, class F>
void make_part(const Drawn<F>& f, const Task& task, const kernels::Strided<T>& y) {
  make_part<T, Device>(kernels::Drawn<F>{f.distribution, ops::state_of_draw(task, f.state)}, task,
                       y);
}

/// No operands; each dimension of the result is a factor of its own.
template <int Rank>
inline constexpr Rule factory_rule = [] {
  Rule rule;
  rule.results = 1;
  rule.needs_box = true;
  rule.factors = rule.result[0].dims = Rank;
  for (int d = 0; d < Rank; ++d) {
    rule.letter[std::size_t(d)] = char('a' + d);
    rule.result[0].factor[std::size_t(d)] = std::int8_t(d);
  }
  return rule;
}();
template <int Rank>
inline constexpr cleave::detail::ExtentsTable factory_table{factory_rule<Rank>};

/// The factory F for an element type, a number of dimensions and a device, type-erased.
template <class F, class T, int Rank, class Device>
struct FactoryInfo {
  static void run(const void* f, const Task& task) {
    make_part<T, Device>(*static_cast<const F*>(f), task,
                         cleave::detail::strided<T, Rank>(task.out[0]));
  }

  static constexpr cleave::detail::OpInfo value = [] {
    cleave::detail::OpInfo info;
    info.name = "factory";
    info.rule = &factory_rule<Rank>;
    info.table = &factory_table<Rank>;
    info.needs_box = true;
    info.draws = requires(const F& f) { f.state; };
    info.dtype[0] = dtype_of<T>();
    info.run = &run;
    return info;
  }();
};

}  // namespace cleave::inline v0::spmd::detail
