// Tensors without types, which programs take and return, and their conversion to DTensors.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/spmd/leaves.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::spmd {

/// A type-erased DTensor: the part of a global array that this rank holds.
struct ErasedTensor {
  std::shared_ptr<void> storage{};
  View local{};
  Shape shape{};    ///< global extents
  Layout layout{};  ///< of no axes for a Tensor that is the same on all ranks
};

/// The type-erased form of a DTensor; shares its elements.
template <class T, int Rank, class Mesh, class P>
ErasedTensor erased(const DTensor<T, Rank, Mesh, P>& x) {
  return {x.to_local().storage(), x.to_local().view(), Shape(x.shape()), x.layout};
}

template <class X>
ErasedTensor erased(const OnAllRanks<X>& x) {
  return {x.tensor.storage(), x.tensor.view(), Shape(x.tensor.shape()), {}};
}

inline ErasedTensor erased(const HostNumber& x) {
  const auto number = std::make_shared<double>(x.value);
  return {number, {number.get(), DType::float64, {}, {}}, {}, {}};
}

/// The type-erased forms of all DTensors in x, in order: DTensors, tuples, arrays and vectors of
/// them, and modules.
template <class... X>
std::vector<ErasedTensor> inputs_of(const X&... x) {
  std::vector<ErasedTensor> inputs;
  const auto append = [&](const auto& leaf) {
    inputs.push_back(erased(cleave::detail::innermost(leaf)));
  };
  (each_leaf(x, append), ...);
  return inputs;
}

namespace detail {

/// The context of an error about a tensor.
inline ErrorContext context_of(const Shape& shape, const Layout& layout, const MeshState& mesh) {
  return {cleave::to_string(shape), cleave::to_string(layout), mesh.describe(), mesh.world_rank()};
}

/// "float32 [12, 6] (Shard(0), Replicate)"
inline std::string described(DType dtype, const std::string& shape, const Layout& layout) {
  return std::string(name_of(dtype)) + " " + shape + " " + cleave::to_string(layout);
}
inline std::string described(DType dtype, const Shape& shape, const Layout& layout) {
  return described(dtype, cleave::to_string(shape), layout);
}

inline OperandRef operand_of(const ErasedTensor& x, const MeshState& mesh) {
  const View& local = x.local;
  const bool placed = x.layout.axes > 0;
  return {{local.data, local.extents.begin(), local.strides.begin(), local.extents.dims},
          x.shape.begin(),
          local.dtype,
          placed ? &x.layout : nullptr,
          placed ? &mesh : nullptr,
          &x.storage};
}

/// An input that is the same on all ranks. Refers to it.
template <class X>
OperandRef operand_of(const OnAllRanks<X>& x) {
  return cleave::detail::operand_of(x.tensor);
}
inline OperandRef operand_of(const HostNumber& x) {
  OperandRef operand{};
  operand.data = const_cast<double*>(&x.value);
  operand.dtype = DType::float64;
  return operand;
}

[[noreturn]] inline void throw_other_type(const std::string& what, DType dtype, const Shape& shape,
                                          const Layout& layout, const MeshState& mesh,
                                          const std::string& expected) {
  throw Error("spmd::run",
              what + " is " + described(dtype, shape, layout) + ", the call expects " + expected,
              context_of(shape, layout, mesh));
}

/// @throws Error if a tensor does not have the element type, number of dimensions and placements of
/// Y
template <class Y>
void require_type(const std::string& what, DType dtype, const Shape& shape, const Layout& layout,
                  const MeshState& mesh) {
  if (dtype_of<typename Y::value_type>() == dtype && Y::dims == shape.dims && Y::layout == layout)
    return;
  throw_other_type(what, dtype, shape, layout, mesh,
                   std::string(name_of(dtype_of<typename Y::value_type>())) + " with " +
                       std::to_string(Y::dims) + " dimensions " + cleave::to_string(Y::layout));
}

/// The DTensor with these elements.
template <class Y, class Mesh>
Y dtensor_of(std::shared_ptr<void> storage, const View& local, const Mesh& mesh,
             const Shape& shape) {
  return Y::unchecked(
      cleave::detail::TensorAccess::make<typename Y::local_type>(
          std::move(storage), local.data, local.extents.begin(), local.strides.begin()),
      mesh, to_array<Y::dims>(shape));
}

/// The mesh of the first DTensor on a Mesh.
template <class Mesh, class... X>
const Mesh* mesh_in(const X&... x) {
  const Mesh* mesh = nullptr;
  const auto look_at = [&](const auto& leaf) {
    const auto& value = cleave::detail::innermost(leaf);
    using V = std::remove_cvref_t<decltype(value)>;
    if constexpr (!is_on_all_ranks<V>) {
      static_assert(std::is_same_v<typename V::mesh_type, Mesh>,
                    "cleave: the inputs and outputs of a program must be on one mesh");
      if (mesh == nullptr) mesh = &value.mesh();
    }
  };
  (each_leaf(x, look_at), ...);
  return mesh;
}

}  // namespace detail

/// An output of a program as a DTensor; shares its elements.
///
///     const auto outputs = runner(inputs_of(weights, x));
///     const auto y = typed<Y>(outputs[0], mesh);
///
/// @throws Error if it has another element type, number of dimensions or placements than Y
template <class Y, class Mesh>
  requires is_dtensor<Y>
Y typed(const ErasedTensor& x, const Mesh& mesh) {
  static_assert(std::is_same_v<typename Y::mesh_type, Mesh>,
                "cleave: the type of a tensor and its mesh do not belong together");
  detail::require_type<Y>("the tensor", x.local.dtype, x.shape, x.layout, mesh.state());
  return detail::dtensor_of<Y>(x.storage, x.local, mesh, x.shape);
}

}  // namespace cleave::inline v0::spmd
