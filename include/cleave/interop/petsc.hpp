// DTensors as vectors of PETSc, and operators written with cleave as its matrices, for KSP, SNES,
// TS and SLEPc, on ranks that are MPI processes. Needs PETSc (Debian: petsc-dev).
//
//     Vec b = petsc::vec(field);                               // the memory of field
//     Mat a = petsc::shell(field, [](const auto& u, const auto& y) {  // y = A u
//       apply(out(y), Laplacian{}, u, edges(zero));
//     });
//     KSPSetOperators(ksp, a, a);
//     KSPSolve(ksp, b, x);
//     VecDestroy(&b), MatDestroy(&a);
//
// PETSc numbers the elements of the ranks one after the other, as DMDA's global vectors do: element
// i of a vector is index i of the array only if the first dimension alone is sharded.
#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include <petscmat.h>
#include <petscvec.h>

#include <cleave/comm/mpi.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/dtensor/factories.hpp>

namespace cleave::inline v0::petsc {

namespace detail {

/// Turns an error of PETSc into an exception.
inline void check(PetscErrorCode code, const char* operation, const ErrorContext& context) {
  if (code == 0) return;
  const char* text = nullptr;
  PetscErrorMessage(code, &text, nullptr);
  throw Error(operation,
              "PETSc: " + std::string(text == nullptr ? "error " + std::to_string(code) : text),
              context);
}

template <class X>
constexpr void require_vector() {
  static_assert(is_dtensor<X> && std::is_same_v<typename X::device_type, Host>,
                "cleave: petsc takes DTensors on the host");
  static_assert(std::is_same_v<typename X::value_type, PetscScalar>,
                "cleave: petsc: the elements are not this PETSc's PetscScalar (Debian: "
                "libpetsc-real-dev has double, libpetsc-complex-dev std::complex<double>)");
  static_assert(X::layout.axes_where([](const Placement& p) { return !p.shards(); }) == 0,
                "cleave: petsc: every axis of the mesh must shard the array: a vector has each "
                "element once");
}

template <class X>
MPI_Comm communicator_of(const X& x) {
  return mpi_handle(x.mesh().state().group());
}

/// A DTensor of other local elements, placed as another one. Does not own them.
template <class X>
X placed_as(const X& like, const PetscScalar* elements) {
  using Local = typename X::local_type;
  return X::unchecked(Local::adopt(const_cast<PetscScalar*>(elements), like.to_local().shape()),
                      like.mesh(), like.shape(), like.actual_layout());
}

/// What a shell matrix computes, and on what.
template <class X, class F>
struct Shell {
  X like;
  F multiply;

  static PetscErrorCode mult(Mat a, Vec x, Vec y) {
    void* context = nullptr;
    PetscCall(MatShellGetContext(a, &context));
    const Shell& shell = *static_cast<const Shell*>(context);
    const PetscScalar* from = nullptr;
    PetscScalar* to = nullptr;
    PetscCall(VecGetArrayRead(x, &from));
    PetscCall(VecGetArrayWrite(y, &to));
    std::string error;
    try {
      const X source = placed_as(shell.like, from), target = placed_as(shell.like, to);
      shell.multiply(source, target);
    } catch (const std::exception& e) {
      error = e.what();
    }
    PetscCall(VecRestoreArrayRead(x, &from));
    PetscCall(VecRestoreArrayWrite(y, &to));
    if (!error.empty()) SETERRQ(PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", error.c_str());
    return 0;
  }
  static PetscErrorCode destroy(Mat a) {
    void* context = nullptr;
    PetscCall(MatShellGetContext(a, &context));
    delete static_cast<Shell*>(context);
    return 0;
  }
};

template <class X>
PetscErrorCode destroy_tensor(void* x) {
  delete static_cast<X*>(x);
  return 0;
}

}  // namespace detail

/// A vector with the elements of a DTensor, without a copy, which keeps them; VecDestroy frees it.
///
/// @param x     every axis of its mesh shards it; its local elements are contiguous
/// @collective  every rank of the mesh
/// @throws Error if the local elements are not contiguous, the ranks are not MPI processes, or
/// PETSc
///               reports an error
template <class X>
Vec vec(const X& x) {
  detail::require_vector<X>();
  if (!x.to_local().contiguous())
    throw Error("petsc::vec", "the local elements are not contiguous", x.context());
  const auto check = [&](PetscErrorCode code) { detail::check(code, "petsc::vec", x.context()); };
  const MPI_Comm communicator = detail::communicator_of(x);
  Vec v = nullptr;
  check(VecCreateMPIWithArray(communicator, 1, PetscInt(x.to_local().size()), PetscInt(x.size()),
                              x.to_local().data(), &v));
  PetscContainer owner = nullptr;
  check(PetscContainerCreate(communicator, &owner));
  check(PetscContainerSetPointer(owner, new X(x)));
  check(PetscContainerSetUserDestroy(owner, detail::destroy_tensor<X>));
  check(PetscObjectCompose(reinterpret_cast<PetscObject>(v), "cleave",
                           reinterpret_cast<PetscObject>(owner)));
  check(PetscContainerDestroy(&owner));
  return v;
}

/// Calls f with a DTensor of a vector's elements, without a copy, placed as another one:
///
///     petsc::with_tensor(solution, field, [&](const auto& u) { error = norm(u - exact).item(); });
///
/// The tensor is valid during the call; f may write its elements.
/// @collective   if f is
/// @throws Error if the vector has other local sizes than `like`; any error of f
template <class X, class F>
void with_tensor(Vec v, const X& like, F&& f) {
  detail::require_vector<X>();
  const auto check = [&](PetscErrorCode code) {
    detail::check(code, "petsc::with_tensor", like.context());
  };
  PetscInt size = 0;
  check(VecGetLocalSize(v, &size));
  if (size != PetscInt(like.to_local().size()))
    throw Error("petsc::with_tensor",
                "the vector has " + std::to_string(size) + " elements on this rank, the tensor " +
                    std::to_string(like.to_local().size()),
                like.context());
  struct Elements {
    Vec of;
    PetscScalar* data = nullptr;
    ~Elements() { VecRestoreArray(of, &data); }  // also of a rank that has none
  } elements{v};
  check(VecGetArray(v, &elements.data));
  std::forward<F>(f)(detail::placed_as(like, elements.data));
}

/// A matrix whose product with a vector is f(x, y): y = A x, both of them DTensors placed as
/// `like`. MatDestroy frees it. An Error in f is an error of PETSc, with its text.
///
/// @param like  @see vec; f is called with its shape, placements and mesh
/// @collective  every rank of the mesh, and f in every product
/// @throws Error as vec
template <class X, class F>
Mat shell(const X& like, F f) {
  detail::require_vector<X>();
  using Shell = detail::Shell<X, F>;
  const auto check = [&](PetscErrorCode code) {
    detail::check(code, "petsc::shell", like.context());
  };
  const auto own = PetscInt(like.to_local().size()), all = PetscInt(like.size());
  Mat a = nullptr;
  check(MatCreateShell(detail::communicator_of(like), own, own, all, all,
                       new Shell{like, std::move(f)}, &a));
  check(MatShellSetOperation(a, MATOP_MULT, reinterpret_cast<void (*)()>(Shell::mult)));
  check(MatShellSetOperation(a, MATOP_DESTROY, reinterpret_cast<void (*)()>(Shell::destroy)));
  return a;
}

}  // namespace cleave::inline v0::petsc
