// GPU tensors from and to DLPack, without a copy, in stream order: arrays of PyTorch, JAX and CuPy.
#pragma once

#include <memory>
#include <utility>

#include <cuda_runtime_api.h>

#include <cleave/interop/dlpack.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::inline v0::cuda::detail {

/// Work enqueued on `after` from now on runs after that of `before`.
inline void join(const Stream& before, const Stream& after) {
  if (before == after) return;
  const Event point;
  point.record(before);
  point.wait_on(after);
}

/// The same when memory is released: on a thread with any current device, which it keeps. Errors
/// are reported by the next use of the device.
inline void join_at_release(int device, const Stream& before, const Stream& after) noexcept {
  int current = 0;
  if (cudaGetDevice(&current) != cudaSuccess || cudaSetDevice(device) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return;
  }
  try {
    join(before, after);
  } catch (const Error&) {
    static_cast<void>(cudaGetLastError());
  }
  static_cast<void>(cudaSetDevice(current));
}

/// An exported tensor: its memory is freed after the work of the stream on which others use it.
template <class X>
struct InOrderOf {
  X x;
  Stream consumer;
  int device;

  InOrderOf(X tensor, Stream stream)
      : x(std::move(tensor)), consumer(std::move(stream)), device(current_device()) {}
  InOrderOf(InOrderOf&&) = default;
  ~InOrderOf() {
    if (const FreeInOrder* const release = release_of(x.storage()))
      join_at_release(device, consumer, release->stream);
  }
};

}  // namespace cleave::inline v0::cuda::detail

namespace cleave::inline v0::detail {

template <>
struct DlpackDevice<Cuda> {
  static bool has(int type, int id) {
    return type == 13 || (type == 2 && id == cuda::current_device());
  }
  static dlpack::DeviceNumber number() { return {2, cuda::current_device()}; }
  /// The other library's stream waits for the work of ours.
  struct BeforeRelease {
    int device;
    cuda::Stream used, producer;
    void operator()() const { cuda::detail::join_at_release(device, used, producer); }
  };
};

}  // namespace cleave::inline v0::detail

namespace cleave::inline v0::dlpack {

/// As `to_dlpack` of a host tensor, for work on the stream `consumer`, which must live as long as
/// the managed tensor: it waits for the current stream's work so far, and the memory is freed after
/// its work. The host does not wait.
///
///     dlpack::to_dlpack(x, at::cuda::getCurrentCUDAStream())
///
/// @throws Error if the streams cannot be joined, e.g. as one of them is being captured
template <ManagedTensor M = ManagedVersioned, class T, int Rank>
M* to_dlpack(const Tensor<T, Rank, Cuda>& x, cudaStream_t consumer,
             const ExportOptions& options = {}) {
  const auto stream = cuda::Stream::adopt(consumer);
  cuda::detail::join(cuda::current_stream(), stream);
  return detail::export_dlpack<M>(x.view(), detail::DlpackDevice<Cuda>::number(), options.read_only,
                                  cuda::detail::InOrderOf(x, stream));
}

/// As `from_dlpack` on the host, of memory of the current device that was written on the stream
/// `producer`: the current stream waits for it. Before the deleter is called, `producer` waits for
/// the stream that is current now.
/// @param producer  must live as long as the result
template <Element T, int Rank, ManagedTensor M>
Tensor<T, Rank, Cuda> from_dlpack(M* managed, Cuda, cudaStream_t producer) {
  const auto stream = cuda::Stream::adopt(producer);
  cuda::detail::join(stream, cuda::current_stream());
  return detail::adopt_dlpack<Tensor<T, Rank, Cuda>>(
      managed, typename detail::DlpackDevice<Cuda>::BeforeRelease{cuda::current_device(),
                                                                  cuda::current_stream(), stream});
}

/// As `copy_dlpack` on the host.
template <Element T, int Rank, ManagedTensor M>
Tensor<T, Rank, Cuda> copy_dlpack(const M* managed, Cuda, cudaStream_t producer) {
  const View view = detail::view_of_dlpack<Cuda>(managed, dtype_of<T>(), Rank, "copy_dlpack");
  const auto stream = cuda::Stream::adopt(producer);
  const Tensor<T, Rank, Cuda> result(to_array<Rank>(view.extents));
  cuda::detail::join(stream, cuda::current_stream());
  strided_copy(Cuda{}, view, result.view());
  cuda::detail::join(cuda::current_stream(), stream);
  return result;
}

}  // namespace cleave::inline v0::dlpack
