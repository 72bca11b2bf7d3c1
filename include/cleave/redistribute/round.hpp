// Calls of several tensors over the same axes that are run together, and small all-reduces among
// them as one of all their elements.
#pragma once

#include <cstddef>
#include <vector>

#include <cleave/redistribute/call.hpp>

namespace cleave::redistribution {

template <class Device>
class Round {
 public:
  /// @param most  how many calls are added at most
  explicit Round(std::size_t most) { calls_.reserve(most); }

  /// @param call  refers to its storage until the round has run
  void add(const Call& call, const Context& context) {
    if (!is_small_sum(call)) return calls_.push_back(call.collective(context));
    const DType dtype = call.source.view.dtype;
    std::size_t i = 0;
    while (i < sums_.size() && (sums_[i].dtype != dtype || sums_[i].op != call.op)) ++i;
    if (i == sums_.size()) sums_.push_back({dtype, call.op, {}, {}});
    sums_[i].parts.push_back({&call, &context});
  }

  /// @collective every rank of the group
  void run(Communicator& group) {
    for (Sum& sum : sums_) {
      if (sum.parts.size() == 1)
        calls_.push_back(sum.parts[0].call->collective(*sum.parts[0].context));
      else pack(sum);
    }
    group.run_all(calls_);
    for (const Sum& sum : sums_)
      if (sum.parts.size() > 1) unpack(sum);
  }

 private:
  struct Part {
    const Call* call;
    const Context* context;
  };
  struct Sum {
    DType dtype;
    ReduceOp op;
    std::vector<Part> parts;
    Block packed;
  };

  /// Whether synchronisation costs more than a copy: the same on all ranks of the group.
  static bool is_small_sum(const Call& call) {
    constexpr index_t small_bytes = 256 << 10;
    return call.kind == CollectiveKind::all_reduce && call.source.view.bytes() <= small_bytes;
  }

  /// Calls f(part, its place among the packed elements).
  template <class F>
  static void each_place(const Sum& sum, const F& f) {
    auto* at = static_cast<std::byte*>(sum.packed.view.data);
    for (const Part& part : sum.parts) {
      const View& view = part.call->source.view;
      if (view.size() > 0) f(*part.call, View::dense(at, sum.dtype, view.extents));
      at += view.bytes();
    }
  }

  void pack(Sum& sum) {
    index_t size = 0;
    for (const Part& part : sum.parts) size += part.call->source.view.size();
    sum.packed = allocate<Device>(sum.dtype, Shape::filled(1, size));
    each_place(sum, [](const Call& call, const View& place) {
      strided_copy(Device{}, call.source.view, place);
    });
    Collective c = sum.parts[0].call->collective(*sum.parts[0].context);
    c.source = sum.packed.view;
    c.destination = sum.packed.view;
    c.global_count = size;
    calls_.push_back(c);
  }
  static void unpack(const Sum& sum) {
    each_place(sum, [](const Call& call, const View& place) {
      strided_copy(Device{}, place, call.result.view);
    });
  }

  std::vector<Collective> calls_{};
  std::vector<Sum> sums_{};
};

}  // namespace cleave::redistribution
