// Communication hooks, which reduce the gradients of a bucket over ranks: an all-reduce, one in
// 16 bits, or a function of the user.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/nn/update.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave {

/// The gradient of one parameter in a bucket.
struct BucketPart {
  int key = 0;              ///< identifies the parameter: the same in every step and bucket
  std::string_view path{};  ///< "layers.0.up.weight"
  Shape extents{};          ///< of the elements on this rank
  index_t begin = 0;        ///< the first element in the bucket
};

/// A gradient bucket: on input this rank's gradients, on output those that the optimizer gets.
struct GradientBucket {
  int number = 0;   ///< buckets are rebuilt once, after the first step
  View gradient{};  ///< [n], contiguous
  std::span<const BucketPart> parts{};
  Communicator* group = nullptr;  ///< the ranks to reduce over; used by this hook only
  const char* axes = "";          ///< the mesh axes of the group
  int module_number = 0;          ///< distinguishes the buckets of several modules

  /// The elements of a part.
  View part(const BucketPart& p) const {
    auto* const base = static_cast<std::byte*>(gradient.data);
    return View::dense(base + p.begin * index_t(size_of(gradient.dtype)), gradient.dtype,
                       p.extents);
  }

  /// Sums x over the ranks, in place.
  /// @collective every rank of the group
  void all_reduce(const View& x) const {
    Collective call = collective(CollectiveKind::all_reduce);
    call.source = x;
    call.destination = x;
    group->run(call);
  }
  /// Gathers `mine` of all ranks into `all`, in rank order.
  /// @param all  [n m] for n ranks, where `mine` is [m]
  /// @collective every rank of the group
  void all_gather(const ConstView& mine, const View& all) const {
    std::vector<Box> pieces;
    for (index_t r = 0; r < group->size(); ++r) {
      Box& box = pieces.emplace_back(Box::of(mine.extents));
      box.begin[0] = r * mine.extents[0];
      box.end[0] = box.begin[0] + mine.extents[0];
    }
    Collective call = collective(CollectiveKind::all_gather);
    call.source = mine;
    call.destination = all;
    call.pieces = pieces;
    call.even = true;
    group->run(call);
  }

 private:
  Collective collective(CollectiveKind kind) const {
    Collective call;
    call.kind = kind;
    call.operation = "replicate";
    call.detail = numbered_detail(module_number, number + 1);
    call.axes = axes;
    return call;
  }
};

/// A communication hook: called asynchronously, bucket after bucket, in the same order on all
/// ranks. Its state belongs to this rank; it may communicate over `group` if all ranks do.
using CommHook = std::function<void(const GradientBucket&)>;

/// The default hook: sums the gradients of all ranks.
struct AllReduce {
  void operator()(const GradientBucket& bucket) const { bucket.all_reduce(bucket.gradient); }
};

/// Does not communicate, so that replicas diverge: for timing a step without communication.
struct NoCommunication {
  void operator()(const GradientBucket&) const {}
};

/// Sums gradients rounded to 16 bits; the sums are accumulated in float and rounded once.
template <class T>
struct CompressedAllReduce {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, bfloat16>,
                "cleave: gradients are compressed to half or bfloat16");

  void operator()(const GradientBucket& bucket) const {
    const View& g = bucket.gradient;
    nn::detail::with_real_type("replicate", g.dtype, [&]<class Real>(Real*) {
      if constexpr (sizeof(Real) == sizeof(T)) {
        bucket.all_reduce(g);
      } else {
        auto* const elements = static_cast<Real*>(g.data);
        const Tensor<T, 1> sent({g.bytes() / index_t(sizeof(Real))});
        for (index_t i = 0; i < sent.size(); ++i) sent.data()[i] = T(float(elements[i]));
        bucket.all_reduce(sent.view());
        for (index_t i = 0; i < sent.size(); ++i) elements[i] = Real(float(sent.data()[i]));
      }
    });
  }
};
using Bf16Compress = CompressedAllReduce<bfloat16>;
using Fp16Compress = CompressedAllReduce<half>;

}  // namespace cleave
