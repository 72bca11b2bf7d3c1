// Eigenvalues and vectors of a matrix that lies in blocks on a grid of processes, by ELPA, of which
// single precision is optional: Debian's is without. Its functions are declared under names of
// their own, as those of ScaLAPACK.
#pragma once

#include <complex>
#include <string>

#include <cleave/comm/mpi.hpp>
#include <cleave/comm/mpi/mpi_handle.hpp>
#include <cleave/core/config.hpp>
#include <cleave/interop/mpi/blacs.hpp>
#include <cleave/mesh/mesh_state.hpp>

extern "C" {
int cleave_elpa_init(int version) __asm__("elpa_init");
void* cleave_elpa_allocate(int* error) __asm__("elpa_allocate");
void cleave_elpa_deallocate(void* handle, int* error) __asm__("elpa_deallocate");
void cleave_elpa_set(void* handle, const char* name, int value,
                     int* error) __asm__("elpa_set_integer");
int cleave_elpa_setup(void* handle) __asm__("elpa_setup");
const char* cleave_elpa_text_of(int error) __asm__("elpa_strerr");
void cleave_elpa_eigenvectors_d(void*, double*, double*, double*,
                                int*) __asm__("elpa_eigenvectors_a_h_a_d");
void cleave_elpa_eigenvectors_dc(void*, std::complex<double>*, double*, std::complex<double>*,
                                 int*) __asm__("elpa_eigenvectors_a_h_a_dc");
}

namespace cleave::inline v0::detail {

/// ELPA's handle of one eigenproblem on the process grid whose rows are the ranks along some axes
/// of a mesh, and whose columns are those along others. ELPA splits two communicators for it.
class Elpa {
 public:
  /// @param n         the extent of the matrix, of which each process has a part; above 0
  /// @param block     the extent of its square blocks
  /// @param height    the rows of this process' part, dense, one column after the other
  /// @param width     its columns
  /// @collective      every rank of the group of these axes
  Elpa(const MeshState& mesh, AxisMask rows, AxisMask columns, int n, int block, int height,
       int width)
      : comm_(MpiComm::duplicate(mpi_handle(*mesh.group(rows | columns)))) {
    constexpr int version = 20170403;  // the first one of this interface
    if ((error_ = cleave_elpa_init(version)) != 0) return;
    handle_ = cleave_elpa_allocate(&error_);
    set("na", n);
    set("nev", n);
    set("local_nrows", height);
    set("local_ncols", width);
    set("nblk", block);
    set("mpi_comm_parent", MPI_Comm_c2f(comm_.get()));
    set("process_row", dealt_place(mesh.extents(), mesh.coordinate(), rows));
    set("process_col", dealt_place(mesh.extents(), mesh.coordinate(), columns));
  }
  Elpa(const Elpa&) = delete;
  Elpa& operator=(const Elpa&) = delete;
  ~Elpa() {
    int error = 0;
    if (handle_ != nullptr) cleave_elpa_deallocate(handle_, &error);
  }

  /// Overwrites a full Hermitian matrix, and writes its eigenvalues, ascending, and vectors. ELPA
  /// does not scale: results are wrong if squares of the elements overflow or underflow.
  /// @param vectors  one per column, dealt as the matrix is
  /// @return         empty, or what ELPA says of an error
  /// @collective     every rank of the group
  template <class T>
  std::string eigenvectors(T* a, double* values, T* vectors) {
    if (error_ == 0) error_ = cleave_elpa_setup(handle_);
    if (error_ == 0) call(a, values, vectors);
    return error_ == 0 ? std::string() : cleave_elpa_text_of(error_);
  }

 private:
  void set(const char* name, int value) {
    if (error_ == 0) cleave_elpa_set(handle_, name, value, &error_);
  }
  void call(double* a, double* values, double* vectors) {
    cleave_elpa_eigenvectors_d(handle_, a, values, vectors, &error_);
  }
  void call(std::complex<double>* a, double* values, std::complex<double>* vectors) {
    cleave_elpa_eigenvectors_dc(handle_, a, values, vectors, &error_);
  }

  MpiComm comm_;
  void* handle_ = nullptr;
  int error_ = 0;
};

}  // namespace cleave::inline v0::detail
