// Communication hooks, which reduce the gradients of a bucket over ranks: an all-reduce, one in
// 16 bits, or a function of the user.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/nn/update.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0 {

namespace parallel {

/// Converts an array to another real type. @see update_elements
template <class From>
struct ConvertStep {
  template <class To>
  CLEAVE_HOST_DEVICE void operator()(To& to, const From& from) const {
    to = To(accumulator_t<To>(accumulator_t<From>(from)));
  }
};

}  // namespace parallel

/// The gradient of one parameter in a bucket.
struct BucketPart {
  int key = 0;              ///< identifies the parameter: the same in every step and bucket
  std::string_view path{};  ///< "layers.0.up.weight"
  Shape extents{};          ///< of the elements on this rank
  index_t begin = 0;        ///< the first element in the bucket
};

/// A gradient bucket: on input this rank's gradients, on output those that the optimizer gets. They
/// are in memory of the module's device; on a GPU a hook enqueues work on the current stream.
struct GradientBucket {
  template <class Device>
  GradientBucket(Device, int bucket, const View& elements, std::span<const BucketPart> parts_of,
                 Communicator& ranks, const char* mesh_axes, int of_module)
      : number(bucket),
        gradient(elements),
        parts(parts_of),
        group(&ranks),
        axes(mesh_axes),
        module_number(of_module),
        is_on_host(std::is_same_v<Device, Host>),
        allocate_(&allocate_on<Device>),
        convert_(&convert_on<Device>) {}

  int number;     ///< buckets are rebuilt once, after the first step
  View gradient;  ///< [n], contiguous
  std::span<const BucketPart> parts;
  Communicator* group;  ///< the ranks to reduce over; used by this hook only
  const char* axes;     ///< the mesh axes of the group
  int module_number;    ///< distinguishes the buckets of several modules
  bool is_on_host;

  /// @throws Error if the gradients are on a GPU
  void require_host(const char* hook) const {
    if (!is_on_host)
      throw Error(hook, "this communication hook supports gradients on the host only");
  }

  /// The elements of a part.
  View part(const BucketPart& p) const {
    auto* const base = static_cast<std::byte*>(gradient.data);
    return View::dense(base + p.begin * index_t(size_of(gradient.dtype)), gradient.dtype,
                       p.extents);
  }

  /// The gradients rounded to another real type, of which a complex number has two, in new memory.
  std::pair<View, std::shared_ptr<void>> rounded_to(DType type) const {
    index_t reals = 0;
    nn::detail::with_real_type("replicate", gradient.dtype, [&]<class Real>(Real*) {
      reals = gradient.bytes() / index_t(sizeof(Real));
    });
    std::shared_ptr<void> memory = allocate_(std::size_t(reals) * size_of(type));
    const View copy = View::dense(memory.get(), type, Shape(std::array<index_t, 1>{reals}));
    convert_(copy, gradient);
    return {copy, std::move(memory)};
  }
  /// Replaces the gradients by such numbers.
  void replace(const View& numbers) const { convert_(gradient, numbers); }

  /// Sums x over the ranks, in place.
  /// @collective every rank of the group
  void all_reduce(const View& x) const {
    group->run(named(Collective::all_reduce(ReduceOp::sum, x, x)));
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
    Collective call = named(Collective::all_gather(mine, all, pieces));
    call.even = true;
    group->run(call);
  }

 private:
  template <class Device>
  static std::shared_ptr<void> allocate_on(std::size_t bytes) {
    return allocate_bytes(Device{}, bytes);
  }

  /// @pre both are contiguous, with equally many reals
  template <class Device>
  static void convert_on(const View& to, const View& from) {
    if (cleave::detail::is_dry()) return;
    nn::detail::with_real_type("replicate", to.dtype, [&]<class To>(To*) {
      nn::detail::with_real_type("replicate", from.dtype, [&]<class From>(From*) {
        update_elements(kernels::On<Device>{}, "replicate", parallel::ConvertStep<From>{},
                        to.bytes() / index_t(sizeof(To)), static_cast<To*>(to.data),
                        static_cast<const From*>(from.data));
      });
    });
  }

  std::shared_ptr<void> (*allocate_)(std::size_t);
  void (*convert_)(const View&, const View&);

  Collective named(const Collective& of) const {
    Collective call = of.named("replicate", axes);
    call.detail = numbered_detail(module_number, number + 1);
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
    if (size_of(bucket.gradient.dtype) == sizeof(T)) return bucket.all_reduce(bucket.gradient);
    const auto [sent, memory] = bucket.rounded_to(dtype_of<T>());
    bucket.all_reduce(sent);
    bucket.replace(sent);
  }
};
using Bf16Compress = CompressedAllReduce<bfloat16>;
using Fp16Compress = CompressedAllReduce<half>;

}  // namespace cleave::inline v0
