/* Distributed arrays for C, and through C for Fortran (cleave.f90) and Python (cleave.py): an array
 * whose parts the ranks of an MPI program hold, under placements that are texts:
 *
 *     int64_t ranks[2] = {2, 2}, shape[2] = {1000, 800};
 *     cleave_mesh* mesh;
 *     cleave_array *rows, *columns;
 *     if (cleave_mesh_create(MPI_Comm_c2f(MPI_COMM_WORLD), 2, ranks, &mesh) ||
 *         cleave_array_create(mesh, "float64", 2, shape, "S0,S1", &rows) ||
 *         cleave_array_redistribute(rows, "R,S1", &columns))
 *       fputs(cleave_error(), stderr);
 *
 * Placements: one per axis of the mesh, separated by commas: R (every rank has all of it), S0 (chunks
 * of dimension 0), B0 (parts that differ by one at most), C0:64 (blocks of 64 dealt in turn), O1:0
 * (rank 1 of the axis has all of it, along dimension 0). Element types have NumPy's names. Elements
 * are in row-major order: the last dimension is contiguous.
 *
 * Functions return 0, or another number after an error, whose text cleave_error() gives; results are
 * then not written. "Collective" functions are called by every rank of the mesh, in the same order.
 * After an error on some ranks only, the others learn of it as in any program of cleave
 * (docs/limits.md). The program initialises MPI before, and finalises it after it has freed all of
 * these objects. */
#ifndef CLEAVE_INTEROP_CLEAVE_H
#define CLEAVE_INTEROP_CLEAVE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ranks of a communicator along the axes of a mesh. */
typedef struct cleave_mesh cleave_mesh;
/* The part that this rank holds of an array. */
typedef struct cleave_array cleave_array;

/* The error of this thread's last call that failed, with operation, shapes, placements, mesh and
 * rank. Valid until the next one. */
const char* cleave_error(void);
/* 10000 major + 100 minor + patch. */
int cleave_version(void);

/* Arranges all ranks of a communicator along axes, row-major. Collective.
 * communicator: MPI_Comm_c2f(comm), which the caller still owns; extents: ranks along each axis. */
int cleave_mesh_create(int communicator, int axes, const int64_t* extents, cleave_mesh** mesh);
/* This rank's position, a number per axis. */
int cleave_mesh_coordinate(const cleave_mesh* mesh, int64_t* coordinate);
/* Arrays keep what they need of their mesh. Null is ignored. */
void cleave_mesh_free(cleave_mesh* mesh);

/* An array of zeros. Nothing is sent. shape: extents of the whole array. */
int cleave_array_create(const cleave_mesh* mesh, const char* type, int dims, const int64_t* shape,
                        const char* placements, cleave_array** array);
/* The same of elements that the caller owns, without a copy: this rank's part, dense, which must live
 * as long as the array. Its extents follow from the placements: cleave_local_extents. */
int cleave_array_adopt(const cleave_mesh* mesh, const char* type, int dims, const int64_t* shape,
                       const char* placements, void* elements, cleave_array** array);
/* The extents of this rank's part of such an array. */
int cleave_local_extents(const cleave_mesh* mesh, int dims, const int64_t* shape,
                         const char* placements, int64_t* extents);
/* Frees the array; elements that were adopted stay. Null is ignored. */
void cleave_array_free(cleave_array* array);

/* The number of dimensions. */
int cleave_array_dims(const cleave_array* array);
/* Extents of the whole array, and of this rank's part. */
int cleave_array_shape(const cleave_array* array, int64_t* shape);
int cleave_array_local_extents(const cleave_array* array, int64_t* extents);
/* The global index of the first element of this rank's part, which is a box of indices: an error
 * under C. */
int cleave_array_local_begin(const cleave_array* array, int64_t* begin);
/* This rank's elements, dense; for the caller to read and write. */
void* cleave_array_data(const cleave_array* array);
/* The name of the element type, and the placements as a text that the functions here take. Valid as
 * long as the array. */
const char* cleave_array_type(const cleave_array* array);
const char* cleave_array_placements(const cleave_array* array);

/* A copy of the array under other placements. Collective. Receives what this rank lacks. */
int cleave_array_redistribute(const cleave_array* array, const char* placements,
                              cleave_array** result);
/* Copies the whole array to `elements` on every rank. Collective. */
int cleave_array_full(const cleave_array* array, void* elements);

/* The Fourier transform of all dimensions, with the signs and factors of NumPy's fftn, or ifftn if
 * `inverse` is not 0. Collective. Takes complex64 and complex128 of one to three dimensions, on meshes
 * of one or two axes; the result is placed as the operand, for which up to four redistributions are
 * made. */
int cleave_array_fft(const cleave_array* array, int inverse, cleave_array** result);
/* x with a x = b, by ScaLAPACK; a: [n, n], b: [n, k], float32, float64, complex64 or complex128, on
 * one mesh of one or two axes; x is placed as b. Collective. If `transposed` is not 0, the arrays are
 * the transposes, as those of matrices in column-major order are: a holds the columns of the matrix,
 * b: [k, n]. */
int cleave_array_solve(const cleave_array* a, const cleave_array* b, int transposed,
                       cleave_array** x);

#ifdef __cplusplus
}
#endif

#endif
