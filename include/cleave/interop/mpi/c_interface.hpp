// The functions of cleave.h. Include it in exactly one file of a program or library, or link
// libcleave-c, which Meson builds. Transforms and solvers are instantiated here for the types that
// cleave.h lists; redistributions need no types.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/comm/mpi.hpp>
#include <cleave/comm/world.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/interop/cleave.h>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/ops/transforms/fourier.hpp>
#include <cleave/placement/placement_text.hpp>
#include <cleave/redistribute/redistribute_local.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/version.hpp>

#if CLEAVE_HAS_SCALAPACK
#include <cleave/interop/scalapack_solvers.hpp>
#endif

struct cleave_mesh {
  std::shared_ptr<const cleave::MeshState> state;
};

struct cleave_array {
  std::shared_ptr<const cleave::MeshState> mesh;
  std::shared_ptr<void> storage;
  cleave::View local;  ///< dense
  cleave::Shape shape;
  cleave::Layout layout;
  std::string placements;
};

namespace cleave::inline v0::c_interface {

inline thread_local std::string last_error;

/// Calls f, and turns exceptions into the number that C functions return.
template <class F>
int guarded(const F& f) noexcept {
  try {
    f();
    return 0;
  } catch (const std::exception& e) {
    last_error = e.what();
    return 1;
  }
}

/// @throws Error if a pointer is null
template <class... P>
void require_pointers(const char* operation, P*... pointers) {
  const bool is_complete = ((pointers != nullptr) && ...);
  if (!is_complete) throw Error(operation, "an argument is a null pointer");
}

inline DType type_of_name(const char* operation, std::string_view name) {
  std::string names;
  for (std::size_t i = 0; i < std::size(cleave::detail::dtype_facts); ++i) {
    if (name == cleave::detail::dtype_facts[i].name) return DType(i);
    names += (i > 0 ? ", " : "") + std::string(cleave::detail::dtype_facts[i].name);
  }
  throw Error(operation, "unknown element type '" + std::string(name) + "'; known are " + names);
}

inline Shape shape_of_pointer(const char* operation, int dims, const std::int64_t* extents) {
  if (dims < 0 || dims > max_dims)
    throw Error(operation,
                std::to_string(dims) + " dimensions: arrays have 0 to " + std::to_string(max_dims));
  cleave::detail::checked_bytes(extents, dims, 1);
  Shape shape = Shape::filled(dims, 0);
  for (int d = 0; d < dims; ++d) shape[d] = extents[d];
  return shape;
}

inline void copy_to(const Shape& from, std::int64_t* to) {
  for (int d = 0; d < from.dims; ++d) to[d] = from[d];
}

inline Shape own_extents(const MeshState& mesh, const Layout& layout, const Shape& shape) {
  return local_shape(layout, shape, mesh.extents(), mesh.coordinate());
}

/// An array of dense local elements.
inline std::unique_ptr<cleave_array> array_of(std::shared_ptr<const MeshState> mesh,
                                              redistribution::Block block, const Shape& shape,
                                              const Layout& layout) {
  return std::make_unique<cleave_array>(cleave_array{
      std::move(mesh), std::move(block.storage), block.view, shape, layout, short_text(layout)});
}

/// @param make  gives the elements of this rank, of a type and extents
template <class Make>
std::unique_ptr<cleave_array> new_array(const char* operation, const cleave_mesh& mesh,
                                        std::string_view type, int dims,
                                        const std::int64_t* extents, std::string_view placements,
                                        const Make& make) {
  const DType dtype = type_of_name(operation, type);
  const Shape shape = shape_of_pointer(operation, dims, extents);
  cleave::detail::checked_bytes(shape.begin(), dims, size_of(dtype));
  const Layout layout = layout_of_text(operation, placements, dims, mesh.state->extents());
  return array_of(mesh.state, make(dtype, own_extents(*mesh.state, layout, shape)), shape, layout);
}

/// The elements under other placements, dense. They share memory with x only where they are its.
inline redistribution::Block brought(const char* operation, const cleave_array& x,
                                     const Layout& to) {
  const redistribution::Context context{*x.mesh, x.shape, operation};
  const Plan plan = redistribution::choose_for<Host>(nullptr, x.layout, to, x.local.dtype, context);
  redistribution::Block block = redistribution::run_plan<Host>(plan, {x.storage, x.local}, context);
  if (block.view.contiguous()) return block;
  redistribution::Block dense =
      redistribution::allocate<Host>(block.view.dtype, block.view.extents);
  strided_copy(Host{}, block.view, dense.view);
  return dense;
}

/// The same in memory of its own.
inline redistribution::Block copied(const char* operation, const cleave_array& x,
                                    const Layout& to) {
  redistribution::Block block = brought(operation, x, to);
  if (block.view.data != x.local.data || block.view.size() == 0) return block;
  redistribution::Block copy = redistribution::allocate<Host>(block.view.dtype, block.view.extents);
  strided_copy(Host{}, block.view, copy.view);
  return copy;
}

/// The placements for which transforms and solvers are instantiated; those of matrices that are
/// stored as their transposes.
template <int Dims, int Axes, bool Transposed>
struct Worked;
template <int Dims, bool Transposed>
struct Worked<Dims, 1, Transposed> {
  using Mesh = DeviceMesh<Host, axes::row>;
  using P = Placements<Shard<int(Transposed)>>;
};
template <bool Transposed>
struct Worked<1, 2, Transposed> {
  using Mesh = DeviceMesh<Host, axes::row, axes::col>;
  using P = Placements<Shard<0>, Replicate>;
};
template <int Dims, bool Transposed>
struct Worked<Dims, 2, Transposed> {
  using Mesh = DeviceMesh<Host, axes::row, axes::col>;
  using P = Placements<Shard<int(Transposed)>, Shard<1 - int(Transposed)>>;
};

/// A DTensor of the elements of an array.
template <class T, int Dims, int Axes, bool Transposed = false>
auto typed(const char* operation, const cleave_array& x) {
  using W = Worked<Dims, Axes, Transposed>;
  using X = DTensor<T, Dims, typename W::Mesh, typename W::P>;
  redistribution::Block block = brought(operation, x, X::layout);
  return X::unchecked(cleave::detail::TensorAccess::make<typename X::local_type>(
                          std::move(block.storage), block.view.data, block.view.extents.begin(),
                          block.view.strides.begin()),
                      typename W::Mesh(x.mesh), to_array<Dims>(x.shape));
}

/// An array of the elements of a DTensor, under given placements.
template <class Y>
std::unique_ptr<cleave_array> untyped(const char* operation, const Y& y, const cleave_array& like,
                                      const Layout& to) {
  const cleave_array there{
      like.mesh, y.to_local().storage(), y.to_local().view(), Shape(y.shape()), Y::layout, {}};
  return array_of(like.mesh, brought(operation, there, to), there.shape, to);
}

/// Calls f<T>() for the type of an array, one of T.
template <class... T, class F>
void with_type(const char* operation, const cleave_array& x, const F& f) {
  bool found = false;
  const auto call = [&]<class U>(std::type_identity<U>) {
    if (x.local.dtype != dtype_of<U>()) return;
    found = true;
    f.template operator()<U>();
  };
  (call(std::type_identity<T>{}), ...);
  if (!found)
    throw Error(
        operation, std::string("arrays of ") + name_of(x.local.dtype) + " are not supported",
        {to_string(x.shape), to_string(x.layout), x.mesh->describe(), x.mesh->world_rank()});
}

/// Calls f with std::integral_constants of a number from 1 to Most.
template <int Most, class F>
void with_number(const char* operation, int number, const char* of, const F& f) {
  if (number < 1 || number > Most)
    throw Error(operation, "1 to " + std::to_string(Most) + " " + of + " are supported, not " +
                               std::to_string(number));
  [&]<int... N>(std::integer_sequence<int, N...>) {
    ((number == N + 1 ? f(std::integral_constant<int, N + 1>{}) : void()), ...);
  }(std::make_integer_sequence<int, Most>{});
}

}  // namespace cleave::inline v0::c_interface

extern "C" {

const char* cleave_error(void) { return cleave::c_interface::last_error.c_str(); }
int cleave_version(void) { return cleave::version; }

int cleave_mesh_create(int communicator, int axes, const int64_t* extents, cleave_mesh** mesh) {
  return cleave::c_interface::guarded([&] {
    using namespace cleave;
    c_interface::require_pointers("cleave_mesh_create", extents, mesh);
    if (axes < 1 || axes > max_axes)
      throw Error("cleave_mesh_create", "a mesh has 1 to " + std::to_string(max_axes) +
                                            " axes, not " + std::to_string(axes));
    std::vector<std::string> names;
    for (int a = 0; a < axes; ++a) names.push_back("axis" + std::to_string(a));
    *mesh = new cleave_mesh{detail::mesh_of_all(
        mpi_communicator(MPI_Comm_f2c(communicator)),
        c_interface::shape_of_pointer("cleave_mesh_create", axes, extents), std::move(names))};
  });
}
int cleave_mesh_coordinate(const cleave_mesh* mesh, int64_t* coordinate) {
  return cleave::c_interface::guarded([&] {
    cleave::c_interface::require_pointers("cleave_mesh_coordinate", mesh, coordinate);
    cleave::c_interface::copy_to(mesh->state->coordinate(), coordinate);
  });
}
void cleave_mesh_free(cleave_mesh* mesh) { delete mesh; }

int cleave_array_create(const cleave_mesh* mesh, const char* type, int dims, const int64_t* shape,
                        const char* placements, cleave_array** array) {
  return cleave::c_interface::guarded([&] {
    using namespace cleave;
    const char* const operation = "cleave_array_create";
    c_interface::require_pointers(operation, mesh, type, shape, placements, array);
    const auto zeros = [](DType dtype, const Shape& extents) {
      redistribution::Block block = redistribution::allocate<Host>(dtype, extents);
      if (extents.product() > 0)
        std::memset(block.view.data, 0, std::size_t(extents.product()) * size_of(dtype));
      return block;
    };
    *array =
        c_interface::new_array(operation, *mesh, type, dims, shape, placements, zeros).release();
  });
}
int cleave_array_adopt(const cleave_mesh* mesh, const char* type, int dims, const int64_t* shape,
                       const char* placements, void* elements, cleave_array** array) {
  return cleave::c_interface::guarded([&] {
    using namespace cleave;
    const char* const operation = "cleave_array_adopt";
    c_interface::require_pointers(operation, mesh, type, shape, placements, array);
    const auto adopted = [&](DType dtype, const Shape& extents) {
      if (extents.product() > 0) c_interface::require_pointers(operation, elements);
      return redistribution::Block{nullptr, View::dense(elements, dtype, extents)};
    };
    *array =
        c_interface::new_array(operation, *mesh, type, dims, shape, placements, adopted).release();
  });
}
int cleave_local_extents(const cleave_mesh* mesh, int dims, const int64_t* shape,
                         const char* placements, int64_t* extents) {
  return cleave::c_interface::guarded([&] {
    using namespace cleave;
    const char* const operation = "cleave_local_extents";
    c_interface::require_pointers(operation, mesh, shape, placements, extents);
    const Shape whole = c_interface::shape_of_pointer(operation, dims, shape);
    const Layout layout = layout_of_text(operation, placements, dims, mesh->state->extents());
    c_interface::copy_to(c_interface::own_extents(*mesh->state, layout, whole), extents);
  });
}
void cleave_array_free(cleave_array* array) { delete array; }

int cleave_array_dims(const cleave_array* array) { return array->shape.dims; }
int cleave_array_shape(const cleave_array* array, int64_t* shape) {
  cleave::c_interface::copy_to(array->shape, shape);
  return 0;
}
int cleave_array_local_extents(const cleave_array* array, int64_t* extents) {
  cleave::c_interface::copy_to(array->local.extents, extents);
  return 0;
}
int cleave_array_local_begin(const cleave_array* array, int64_t* begin) {
  return cleave::c_interface::guarded([&] {
    using namespace cleave;
    c_interface::require_pointers("cleave_array_local_begin", array, begin);
    if (!array->layout.is_box())
      throw Error("cleave_array_local_begin",
                  "the part of a block-cyclic array is no box of indices",
                  {to_string(array->shape), to_string(array->layout), array->mesh->describe(),
                   array->mesh->world_rank()});
    const Box box =
        owned_box(array->layout, array->shape, array->mesh->extents(), array->mesh->coordinate());
    c_interface::copy_to(box.begin, begin);
  });
}
void* cleave_array_data(const cleave_array* array) { return array->local.data; }
const char* cleave_array_type(const cleave_array* array) {
  return cleave::name_of(array->local.dtype);
}
const char* cleave_array_placements(const cleave_array* array) { return array->placements.c_str(); }

int cleave_array_redistribute(const cleave_array* array, const char* placements,
                              cleave_array** result) {
  return cleave::c_interface::guarded([&] {
    using namespace cleave;
    const char* const operation = "cleave_array_redistribute";
    c_interface::require_pointers(operation, array, placements, result);
    const Layout to =
        layout_of_text(operation, placements, array->shape.dims, array->mesh->extents());
    *result = c_interface::array_of(array->mesh, c_interface::copied(operation, *array, to),
                                    array->shape, to)
                  .release();
  });
}
int cleave_array_full(const cleave_array* array, void* elements) {
  return cleave::c_interface::guarded([&] {
    using namespace cleave;
    const char* const operation = "cleave_array_full";
    c_interface::require_pointers(operation, array, elements);
    const redistribution::Block whole =
        c_interface::brought(operation, *array, Layout::replicated(array->mesh->extents().dims));
    if (array->shape.product() > 0)
      std::memcpy(elements, whole.view.data,
                  std::size_t(array->shape.product()) * size_of(array->local.dtype));
  });
}

int cleave_array_fft(const cleave_array* array, int inverse, cleave_array** result) {
  return cleave::c_interface::guarded([&] {
    using namespace cleave;
    using namespace c_interface;
    const char* const operation = "cleave_array_fft";
    require_pointers(operation, array, result);
    const auto transform = [&]<class T, int Dims, int Axes>() {
      const auto x = typed<T, Dims, Axes>(operation, *array);
      *result = (inverse != 0 ? untyped(operation, ifft(x), *array, array->layout)
                              : untyped(operation, fft(x), *array, array->layout))
                    .release();
    };
    with_number<2>(operation, array->mesh->extents().dims, "axes", [&](auto axes) {
      with_number<3>(operation, array->shape.dims, "dimensions", [&](auto dims) {
        with_type<std::complex<float>, std::complex<double>>(operation, *array, [&]<class T>() {
          transform.template operator()<T, dims(), axes()>();
        });
      });
    });
  });
}

int cleave_array_solve(const cleave_array* a, const cleave_array* b, int transposed,
                       cleave_array** x) {
  return cleave::c_interface::guarded([&] {
    using namespace cleave;
    using namespace c_interface;
    const char* const operation = "cleave_array_solve";
    require_pointers(operation, a, b, x);
#if CLEAVE_HAS_SCALAPACK
    if (a->shape.dims != 2 || b->shape.dims != 2 || a->local.dtype != b->local.dtype ||
        a->mesh != b->mesh)
      throw Error(operation, "takes matrices of one element type on one mesh",
                  {to_string(a->shape) + " and " + to_string(b->shape),
                   to_string(a->layout) + " and " + to_string(b->layout), a->mesh->describe(),
                   a->mesh->world_rank()});
    with_number<2>(operation, a->mesh->extents().dims, "axes", [&](auto axes) {
      with_type<float, double, std::complex<float>, std::complex<double>>(
          operation, *a, [&]<class T>() {
            const auto matrix = [&](const cleave_array& of) {
              return transposed != 0 ? transpose(typed<T, 2, axes(), true>(operation, of))
                                     : typed<T, 2, axes()>(operation, of);
            };
            const auto found = scalapack::solve(matrix(*a), matrix(*b));
            *x = (transposed != 0 ? untyped(operation, transpose(found), *b, b->layout)
                                  : untyped(operation, found, *b, b->layout))
                     .release();
          });
    });
#else
    static_cast<void>(transposed);
    throw Error(operation,
                "this library was built without ScaLAPACK (Debian: libscalapack-openmpi-dev)");
#endif
  });
}

}  // extern "C"
