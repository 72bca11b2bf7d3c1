// Tensors from and to DLPack, without a copy: arrays of NumPy, PyTorch, JAX, CuPy and other
// libraries that have `__dlpack__` and `from_dlpack`.
//
// No header of DLPack is included: a managed tensor is any struct with its members,
// `DLManagedTensor` or `DLManagedTensorVersioned` of <dlpack/dlpack.h> as well as the two that are
// declared here. GPU memory: interop/dlpack_cuda.hpp.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::dlpack {

// The interface of DLPack 1.0 (https://dmlc.github.io/dlpack/latest/c_api.html), and its older
// form.

struct Version {
  std::uint32_t major, minor;
};

struct DeviceNumber {
  std::int32_t device_type;  ///< 1: CPU, 2: CUDA, 3: pinned, 13: managed memory
  std::int32_t device_id;
};

struct ElementType {
  std::uint8_t code;  ///< 0: int, 1: uint, 2: float, 4: bfloat, 5: complex, 6: bool
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Array {
  void* data;
  DeviceNumber device;
  std::int32_t ndim;
  ElementType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  ///< in elements; null: row-major
  std::uint64_t byte_offset;
};

/// The older form, in capsules named "dltensor".
struct Managed {
  Array dl_tensor;
  void* manager_ctx;
  void (*deleter)(Managed*);
};

/// The form since DLPack 1.0, in capsules named "dltensor_versioned".
struct ManagedVersioned {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;  ///< bit 0: read-only
  Array dl_tensor;
};

/// A struct with the members of one of them.
template <class M>
concept ManagedTensor = requires(M managed) {
  managed.dl_tensor.byte_offset;
  managed.manager_ctx;
  managed.deleter(&managed);
};

}  // namespace cleave::inline v0::dlpack

namespace cleave::inline v0::detail {

template <class M>
inline constexpr bool is_versioned = requires(M managed) {
  managed.version.major;
  managed.flags;
};

inline constexpr std::uint64_t dlpack_read_only = 1;

constexpr dlpack::ElementType dlpack_type(DType type) {
  const auto bits = std::uint8_t(8 * size_of(type));
  switch (type) {
    case DType::boolean: return {6, bits, 1};
    case DType::bfloat16: return {4, bits, 1};
    case DType::float8_e4m3: return {10, bits, 1};
    case DType::float8_e5m2: return {12, bits, 1};
    case DType::complex64:
    case DType::complex128: return {5, bits, 1};
    case DType::float16:
    case DType::float32:
    case DType::float64: return {2, bits, 1};
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64: return {0, bits, 1};
    default: return {1, bits, 1};
  }
}

/// Which memory DLPack calls a Device's, and how work on it is ordered. Specialised for GPUs.
template <class Device>
struct DlpackDevice {
  static_assert(std::is_same_v<Device, Host>,
                "cleave: include cleave/interop/dlpack_cuda.hpp for tensors on GPUs");
  static constexpr bool has(int type, int) { return type == 1 || type == 3 || type == 13; }
  static constexpr dlpack::DeviceNumber number() { return {1, 0}; }
  /// What precedes the return of the other library's memory.
  struct BeforeRelease {
    void operator()() const {}
  };
};

/// What an exported managed tensor holds: the tensor, and the arrays to which it points.
template <class M, class Kept>
struct DlpackExport {
  M managed{};
  Kept kept;
  std::array<std::int64_t, std::size_t(max_dims)> shape{}, strides{};

  explicit DlpackExport(Kept keep) : kept(std::move(keep)) {}
};

template <class M, class Kept>
M* export_dlpack(const View& view, dlpack::DeviceNumber device, bool read_only, Kept kept) {
  auto made = std::make_unique<DlpackExport<M, Kept>>(std::move(kept));
  made->shape = view.extents.values;
  made->strides = view.strides.values;
  M& managed = made->managed;
  auto& array = managed.dl_tensor;
  const dlpack::ElementType type = dlpack_type(view.dtype);
  array.data = view.data;
  array.device.device_type = static_cast<decltype(array.device.device_type)>(device.device_type);
  array.device.device_id = device.device_id;
  array.ndim = view.extents.dims;
  array.dtype.code = type.code;
  array.dtype.bits = type.bits;
  array.dtype.lanes = type.lanes;
  array.shape = made->shape.data();
  array.strides = made->strides.data();
  array.byte_offset = 0;
  if constexpr (is_versioned<M>) {
    managed.version.major = 1;
    managed.version.minor = 0;
    managed.flags = read_only ? dlpack_read_only : 0;
  } else if (read_only) {
    throw Error("to_dlpack", "the older form of DLPack has no read-only arrays; pass a copy");
  }
  managed.deleter = [](M* self) { delete static_cast<DlpackExport<M, Kept>*>(self->manager_ctx); };
  managed.manager_ctx = made.get();
  return &made.release()->managed;
}

/// The elements of a managed tensor. @throws Error if they are not `dims`-dimensional elements of
/// that type in that memory
template <class Device, class M>
View view_of_dlpack(const M* managed, DType wanted, int dims, const char* operation) {
  if (managed == nullptr) throw Error(operation, "the managed tensor is null");
  if constexpr (is_versioned<M>)
    if (managed->version.major != 1)
      throw Error(operation, "version " + std::to_string(managed->version.major) +
                                 " of DLPack is not supported, only version 1");
  const auto& array = managed->dl_tensor;
  const auto device = int(array.device.device_type);
  if (!DlpackDevice<Device>::has(device, array.device.device_id))
    throw Error(operation, "the elements are on device " + std::to_string(array.device.device_id) +
                               " of DLPack's type " + std::to_string(device) +
                               ", not in memory of this rank's " + Device::name);
  const dlpack::ElementType type = dlpack_type(wanted);
  if (array.dtype.code != type.code || array.dtype.bits != type.bits ||
      array.dtype.lanes != type.lanes)
    throw Error(operation,
                "the elements are of DLPack's type (" + std::to_string(int(array.dtype.code)) +
                    ", " + std::to_string(int(array.dtype.bits)) + " bits, " +
                    std::to_string(int(array.dtype.lanes)) + " lanes), not " + name_of(wanted));
  if (array.ndim != dims)
    throw Error(operation, "the array has " + std::to_string(array.ndim) + " dimensions, not " +
                               std::to_string(dims));
  View view{nullptr, wanted, Shape::filled(dims, 0), {}};
  for (int d = 0; d < dims; ++d) view.extents[d] = array.shape[d];
  checked_bytes(view.extents.values.data(), dims, size_of(wanted));
  view.strides = row_major_strides(view.extents);
  for (int d = 0; array.strides != nullptr && d < dims; ++d) view.strides[d] = array.strides[d];
  if (array.data != nullptr) view.data = static_cast<std::byte*>(array.data) + array.byte_offset;
  // complex numbers need the alignment of their parts
  const std::size_t alignment = type.code == 5 ? size_of(wanted) / 2 : size_of(wanted);
  if (reinterpret_cast<std::uintptr_t>(view.data) % alignment != 0)
    throw Error(operation, "the elements are not aligned to " + std::to_string(alignment) +
                               " bytes; pass a copy");
  return view;
}

/// Whether writes are forbidden; the older form does not say.
template <class M>
bool is_read_only(const M& managed) {
  if constexpr (is_versioned<M>) return (managed.flags & dlpack_read_only) != 0;
  else return false;
}

/// Calls the deleter when the last tensor is destroyed. @throws nothing
template <class M, class Before>
struct DlpackRelease {
  M* managed;
  Before before;

  void operator()(void*) const {
    before();
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
};

/// A tensor that owns the managed tensor. @param before  called before its deleter
template <class X, class M, class Before>
X adopt_dlpack(M* managed, Before before) {
  const View view = view_of_dlpack<typename X::device_type>(
      managed, dtype_of<typename X::value_type>(), X::dims, "from_dlpack");
  if (is_read_only(*managed))
    throw Error("from_dlpack",
                "the array is read-only, but a Tensor can be written; copy it with copy_dlpack",
                {.shapes = to_string(view.extents)});
  if (view.size() != 0 && view.data == nullptr)
    throw Error("from_dlpack", "the array is null", {.shapes = to_string(view.extents)});
  // a shared_ptr whose control block cannot be allocated would call the deleter
  using Release = DlpackRelease<M, Before>;
  auto armed = std::make_shared<std::unique_ptr<void, Release>>(nullptr, Release{managed, before});
  armed->reset(managed);
  return X::adopt(static_cast<typename X::value_type*>(view.data), to_array<X::dims>(view.extents),
                  to_array<X::dims>(view.strides), std::shared_ptr<void>(armed, managed));
}

}  // namespace cleave::inline v0::detail

namespace cleave::inline v0::dlpack {

struct ExportOptions {
  bool read_only = false;  ///< others must not write the elements
};

/// A managed tensor of the elements of x, for another library, which calls its deleter once.
///
///     PyCapsule_New(dlpack::to_dlpack(x), "dltensor_versioned", ..)
///     dlpack::to_dlpack<DLManagedTensor>(x.to_local())      // of <dlpack/dlpack.h>
///
/// Shares the storage, any strides, and holds it until the deleter is called, on any thread. As the
/// other library's writes are not counted, gradients do not detect them.
/// @param x          on the host; to share a DTensor's part: `x.to_local()`
/// @collective       none
/// @cost             one small allocation
/// @throws Error     for read_only in the older form, which cannot say it
template <ManagedTensor M = ManagedVersioned, class T, int Rank>
M* to_dlpack(const Tensor<T, Rank>& x, const ExportOptions& options = {}) {
  return detail::export_dlpack<M>(x.view(), detail::DlpackDevice<Host>::number(), options.read_only,
                                  x);
}

/// A tensor of the elements of a managed tensor, without a copy: any strides and offsets.
///
///     const auto x = from_local(dlpack::from_dlpack<double, 2>(managed), mesh, Shard<0>{});
///
/// @param managed  owned by the result, whose last handle calls the deleter; after an Error by the
///                 caller, as before
/// @collective     none
/// @throws Error   if the elements are not of type T, not in memory of the host, not aligned, have
///                 another number of dimensions, or are read-only, which `copy_dlpack` accepts; for
///                 versions of DLPack other than 1
template <Element T, int Rank, ManagedTensor M>
Tensor<T, Rank> from_dlpack(M* managed) {
  return detail::adopt_dlpack<Tensor<T, Rank>>(
      managed, typename detail::DlpackDevice<Host>::BeforeRelease{});
}

/// A row-major copy of the elements of a managed tensor, which may be read-only. The caller still
/// owns it.
/// @throws Error as `from_dlpack`
template <Element T, int Rank, ManagedTensor M>
Tensor<T, Rank> copy_dlpack(const M* managed) {
  const View view = detail::view_of_dlpack<Host>(managed, dtype_of<T>(), Rank, "copy_dlpack");
  const Tensor<T, Rank> result(to_array<Rank>(view.extents));
  strided_copy(view, result.view());
  return result;
}

}  // namespace cleave::inline v0::dlpack
