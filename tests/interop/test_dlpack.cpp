// Tensors and DLPack: pointers, every field, owners, other declarations of the structs, errors.
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/from_local.hpp>
#include <cleave/interop/dlpack.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using cleave::testing::contains;
using cleave::testing::error_of;

// Declarations like those of <dlpack/dlpack.h> 0.6, which has the older form only.
typedef enum { kDLCPU = 1, kDLCUDA = 2 } DLDeviceType;
typedef struct {
  DLDeviceType device_type;
  int device_id;
} DLDevice;
typedef struct {
  std::uint8_t code, bits;
  std::uint16_t lanes;
} DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int ndim;
  DLDataType dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor*);
} DLManagedTensor;

static_assert(sizeof(DLManagedTensor) == sizeof(dlpack::Managed));
static_assert(sizeof(dlpack::ManagedVersioned) == 80 && sizeof(dlpack::Array) == 48);
static_assert(offsetof(dlpack::ManagedVersioned, flags) == 24);

namespace shared_arrays {
namespace {

/// A 2 x 3 array of another library, at an offset in its memory, which counts its deleter's calls.
template <class M>
struct Foreign {
  std::vector<double> memory = {-1, -1, 0, 1, 2, 3, 4, 5};
  std::int64_t shape[2] = {2, 3}, strides[2] = {3, 1};
  int deleted = 0;
  M managed{};

  Foreign() {
    auto& array = managed.dl_tensor;
    array.data = memory.data();
    array.device = {decltype(array.device.device_type)(1), 0};
    array.ndim = 2;
    array.dtype = {2, 64, 1};
    array.shape = shape;
    array.strides = strides;
    array.byte_offset = 2 * sizeof(double);
    managed.manager_ctx = this;
    managed.deleter = [](M* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    if constexpr (requires { managed.version; }) managed.version = {1, 1};
  }
  Foreign(const Foreign&) = delete;
};

template <class M>
void check_import() {
  Foreign<M> foreign;
  {
    auto x = dlpack::from_dlpack<double, 2>(&foreign.managed);
    CHECK(x.data() == foreign.memory.data() + 2);
    CHECK(x.shape() == std::array<index_t, 2>{2, 3});
    CHECK(x(1, 2) == 5);
    x(0, 1) = 7;
    CHECK(foreign.memory[3] == 7);
    const auto row = x.select(0, 1);
    x = {};
    CHECK(foreign.deleted == 0);  // a view still needs the memory
    CHECK(row(0) == 3);
  }
  CHECK(foreign.deleted == 1);
}

template <class M>
void check_export() {
  const Tensor<float, 2> whole({4, 6});
  for (index_t i = 0; i < 24; ++i) whole.data()[i] = float(i);
  M* managed = nullptr;
  {
    const auto part = whole.transpose(0, 1).slice(1, 1, 3);  // [6, 2]
    managed = dlpack::to_dlpack<M>(part);
  }
  CHECK(whole.shared());
  const auto& array = managed->dl_tensor;
  CHECK(static_cast<float*>(array.data) == whole.data() + 6);
  CHECK(int(array.device.device_type) == 1);
  CHECK(array.ndim == 2);
  CHECK(array.shape[0] == 6);
  CHECK(array.shape[1] == 2);
  CHECK(array.strides[0] == 1);
  CHECK(array.strides[1] == 6);
  CHECK(array.byte_offset == 0);
  {
    const auto back = dlpack::from_dlpack<float, 2>(managed);  // its own again, without a copy
    CHECK(back.data() == whole.data() + 6);
    CHECK(back(5, 1) == 17);
  }
  CHECK(!whole.shared());
}

template <class T>
void check_type(int code, int bits) {
  const Tensor<T, 1> x({3});
  auto* const managed = dlpack::to_dlpack(x);
  CHECK(int(managed->dl_tensor.dtype.code) == code);
  CHECK(int(managed->dl_tensor.dtype.bits) == bits);
  CHECK(int(managed->dl_tensor.dtype.lanes) == 1);
  CHECK(dlpack::from_dlpack<T, 1>(managed).data() == x.data());
}

}  // namespace

TEST_CASE("arrays of other libraries are tensors at the same address, released with the last one") {
  check_import<dlpack::Managed>();
  check_import<dlpack::ManagedVersioned>();
  check_import<DLManagedTensor>();
}

TEST_CASE("exported tensors have the address and strides of the view, and hold its memory") {
  check_export<dlpack::Managed>();
  check_export<dlpack::ManagedVersioned>();
  check_export<DLManagedTensor>();
}

TEST_CASE("every element type has the code and bits of DLPack's header") {
  check_type<bool>(6, 8);
  check_type<std::int8_t>(0, 8);
  check_type<std::uint16_t>(1, 16);
  check_type<std::int32_t>(0, 32);
  check_type<std::uint64_t>(1, 64);
  check_type<half>(2, 16);
  check_type<bfloat16>(4, 16);
  check_type<float8_e4m3>(10, 8);
  check_type<float8_e5m2>(12, 8);
  check_type<float>(2, 32);
  check_type<double>(2, 64);
  check_type<std::complex<float>>(5, 64);
  check_type<std::complex<double>>(5, 128);
}

TEST_CASE("arrays without strides are row-major; negative and zero strides stay what they are") {
  Foreign<dlpack::ManagedVersioned> foreign;
  foreign.managed.dl_tensor.strides = nullptr;
  CHECK(dlpack::from_dlpack<double, 2>(&foreign.managed)(1, 0) == 3);
  foreign.managed.dl_tensor.strides = foreign.strides;
  foreign.managed.dl_tensor.byte_offset = 7 * sizeof(double);
  foreign.strides[0] = -3;
  foreign.strides[1] = -1;
  CHECK(dlpack::from_dlpack<double, 2>(&foreign.managed)(1, 1) == 1);
  foreign.strides[0] = 0;
  const auto repeated = dlpack::from_dlpack<double, 2>(&foreign.managed);
  CHECK(repeated(1, 1) == 4);
  CHECK(contains(error_of([&] { repeated.fill_(0); }), "fill_"));
}

TEST_CASE("scalars and arrays without elements are shared, too") {
  const auto scalar = Tensor<double, 0>({}, {2.5});
  auto* const managed = dlpack::to_dlpack(scalar);
  CHECK(managed->dl_tensor.ndim == 0);
  CHECK(dlpack::from_dlpack<double, 0>(managed).item() == 2.5);
  const Tensor<float, 3> empty({2, 0, 3});
  const auto back = dlpack::from_dlpack<float, 3>(dlpack::to_dlpack<dlpack::Managed>(empty));
  CHECK(back.shape() == empty.shape());
  Foreign<dlpack::Managed> foreign;
  foreign.shape[0] = 0;
  foreign.managed.dl_tensor.data = nullptr;
  CHECK(dlpack::from_dlpack<double, 2>(&foreign.managed).empty());
  CHECK(foreign.deleted == 1);
}

TEST_CASE("a read-only array is copied, not adopted; the older form cannot say read-only") {
  Foreign<dlpack::ManagedVersioned> foreign;
  foreign.managed.flags = 1;
  CHECK(contains(error_of([&] { dlpack::from_dlpack<double, 2>(&foreign.managed); }),
                 "from_dlpack: the array is read-only, but a Tensor can be written; copy it with "
                 "copy_dlpack"));
  const auto copy = dlpack::copy_dlpack<double, 2>(&foreign.managed);
  CHECK(copy.data() != foreign.memory.data() + 2);
  CHECK(copy(1, 1) == 4);
  CHECK(foreign.deleted == 0);
  const Tensor<double, 1> x({2});
  auto* const locked = dlpack::to_dlpack(x, {.read_only = true});
  CHECK(locked->flags == 1);
  CHECK(locked->version.major == 1);
  locked->deleter(locked);
  CHECK(contains(error_of([&] { dlpack::to_dlpack<dlpack::Managed>(x, {.read_only = true}); }),
                 "the older form of DLPack has no read-only arrays; pass a copy"));
  CHECK(!x.shared());
}

TEST_CASE("an array that is no such tensor is refused, and stays the caller's") {
  Foreign<dlpack::ManagedVersioned> foreign;
  auto& array = foreign.managed.dl_tensor;
  const auto refused = [&](const char* part) {
    return contains(error_of([&] { dlpack::from_dlpack<double, 2>(&foreign.managed); }), part);
  };
  const auto with = [&](auto& field, auto value, const char* part) {
    const auto before = std::exchange(field, value);
    CHECK(refused(part));
    field = before;
  };
  with(foreign.managed.version.major, 2u, "version 2 of DLPack is not supported, only version 1");
  with(array.device.device_type, 2,
       "device 0 of DLPack's type 2, not in memory of this rank's host");
  with(array.dtype.bits, std::uint8_t(32), "DLPack's type (2, 32 bits, 1 lanes), not float64");
  with(array.dtype.lanes, std::uint16_t(2), "2 lanes), not float64");
  with(array.ndim, 1, "the array has 1 dimensions, not 2");
  with(array.byte_offset, std::uint64_t(4), "not aligned to 8 bytes; pass a copy");
  with(array.data, static_cast<void*>(nullptr), "the array is null");
  with(foreign.shape[1], std::int64_t(-1), "negative");
  CHECK(contains(
      error_of([] { dlpack::from_dlpack<double, 2>(static_cast<DLManagedTensor*>(nullptr)); }),
      "the managed tensor is null"));
  CHECK(foreign.deleted == 0);
}

TEST_CASE("rows that every rank gets from another library are one global array, without a copy") {
  on_ranks({1, 3}, [](World& world) {
    const auto mesh = init_device_mesh<axes::row>(world, {index_t(world.size())});
    Foreign<dlpack::ManagedVersioned> foreign;
    for (double& value : foreign.memory) value += 100 * world.rank();
    const auto x = from_local(dlpack::from_dlpack<double, 2>(&foreign.managed), mesh, Shard<0>{});
    CHECK(x.to_local().data() == foreign.memory.data() + 2);
    const auto full = x.full_tensor();
    for (index_t i = 0; i < 2 * world.size(); ++i)
      for (index_t j = 0; j < 3; ++j) CHECK(full(i, j) == double(100 * (i / 2) + i % 2 * 3 + j));
  });
}

}  // namespace shared_arrays
