/* cleave.h from C: every result against loops over the global array. Rank 0 prints the line that the
 * scripts read. */
#include <cleave/interop/cleave.h>
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, passed, failed, wrong;

#define EXPECT(condition)                                                                   \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      ++wrong;                                                                              \
      fprintf(stderr, "rank %d: %s:%d: %s (%s)\n", rank, __FILE__, __LINE__, #condition, \
              cleave_error());                                                              \
    }                                                                                       \
  } while (0)

static void end_case(const char* name) {
  int all;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (all) ++failed;
  else ++passed;
  if (all && rank == 0) fprintf(stderr, "failed: %s\n", name);
  wrong = 0;
}

/* The indices of dimension d that a rank owns, by the definitions of the placements: one axis after
 * another keeps some of those that are left. Returns how many. */
static int owned(const char* text, const int64_t* mesh, const int64_t* at, int d, int64_t extent,
                 int64_t* index) {
  int64_t count = extent;
  for (int64_t i = 0; i < extent; ++i) index[i] = i;
  for (int a = 0; *text; ++a) {
    const char kind = *text++;
    long x = 0, y = 0;
    if (kind != 'R') x = strtol(text, (char**)&text, 10);
    if (*text == ':') y = strtol(text + 1, (char**)&text, 10);
    if (*text == ',') ++text;
    const long dim = kind == 'O' ? y : x;
    if (kind == 'R' || dim != d) continue;
    const int64_t n = count, chunk = (n + mesh[a] - 1) / mesh[a], least = n / mesh[a],
                  more = n % mesh[a];
    count = 0;
    for (int64_t i = 0; i < n; ++i) {
      int64_t owner = 0;
      if (kind == 'S') owner = i / chunk;
      if (kind == 'B')
        owner = i < more * (least + 1) ? i / (least + 1) : more + (i - more * (least + 1)) / least;
      if (kind == 'C') owner = i / y % mesh[a];
      if (kind == 'O') owner = x;
      if (owner == at[a]) index[count++] = index[i];
    }
  }
  return (int)count;
}

/* Whether the local elements are 10 i + j at the global indices (i, j) that this rank owns. */
static int holds(const cleave_array* x, const char* placements, const int64_t* mesh,
                 const int64_t* at, const int64_t* shape) {
  int64_t rows[64], columns[64], extents[2];
  const int m = owned(placements, mesh, at, 0, shape[0], rows);
  const int n = owned(placements, mesh, at, 1, shape[1], columns);
  cleave_array_local_extents(x, extents);
  if (m * n > 0 && (extents[0] != m || extents[1] != n)) return 0;
  const int32_t* data = cleave_array_data(x);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      if (data[i * n + j] != 10 * rows[i] + columns[j]) return 0;
  return strcmp(cleave_array_placements(x), placements) == 0;
}

static void test_redistribution(cleave_mesh* mesh, int axes, const int64_t* extents,
                                const char* const* texts, int count) {
  const int64_t shapes[][2] = {{7, 5}, {8, 9}, {1, 3}, {0, 4}};
  int64_t at[2];
  EXPECT(cleave_mesh_coordinate(mesh, at) == 0);
  for (int s = 0; s < 4; ++s)
    for (int p = 0; p < count; ++p)
      for (int q = 0; q < count; ++q) {
        const int64_t* shape = shapes[s];
        int64_t own[2], rows[64], columns[64];
        EXPECT(cleave_local_extents(mesh, 2, shape, texts[p], own) == 0);
        int32_t* part = malloc(sizeof(int32_t) * (size_t)(own[0] * own[1] + 1));
        const int m = owned(texts[p], extents, at, 0, shape[0], rows);
        const int n = owned(texts[p], extents, at, 1, shape[1], columns);
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) part[i * n + j] = (int32_t)(10 * rows[i] + columns[j]);
        cleave_array *x = NULL, *y = NULL;
        EXPECT(cleave_array_adopt(mesh, "int32", 2, shape, texts[p], part, &x) == 0);
        if (m * n > 0) EXPECT(cleave_array_data(x) == part); /* no copy */
        EXPECT(holds(x, texts[p], extents, at, shape));
        EXPECT(cleave_array_redistribute(x, texts[q], &y) == 0);
        EXPECT(holds(y, texts[q], extents, at, shape));
        if (m * n > 0) EXPECT(cleave_array_data(y) != part);
        int32_t whole[128];
        EXPECT(cleave_array_full(y, whole) == 0);
        for (int i = 0; i < shape[0]; ++i)
          for (int j = 0; j < shape[1]; ++j) EXPECT(whole[i * shape[1] + j] == 10 * i + j);
        cleave_array_free(x);
        cleave_array_free(y);
        free(part);
      }
  end_case(axes == 1 ? "redistribution on one axis" : "redistribution on two axes");
}

static void test_transform(cleave_mesh* mesh, int axes, const char* placements) {
  const int64_t shape[3] = {3, 5, 4};
  const int size = 60;
  double complex given[60], expected[60], found[60];
  for (int i = 0; i < size; ++i) given[i] = i * 7 % 11 + I * (i * 5 % 13);
  for (int k = 0; k < size; ++k) {
    expected[k] = 0;
    for (int i = 0; i < size; ++i) {
      const double turns = (k / 20) * (i / 20) / 3.0 + (k / 4 % 5) * (i / 4 % 5) / 5.0 +
                           (k % 4) * (i % 4) / 4.0;
      expected[k] += given[i] * cexp(-2 * acos(-1) * I * turns);
    }
  }
  cleave_array *whole, *x, *y, *back;
  EXPECT(cleave_array_adopt(mesh, "complex128", 3, shape, axes == 1 ? "R" : "R,R", given, &whole) ==
         0);
  EXPECT(cleave_array_redistribute(whole, placements, &x) == 0);
  EXPECT(cleave_array_fft(x, 0, &y) == 0);
  EXPECT(strcmp(cleave_array_placements(y), placements) == 0);
  EXPECT(cleave_array_full(y, found) == 0);
  for (int i = 0; i < size; ++i) EXPECT(cabs(found[i] - expected[i]) < 1e-11);
  EXPECT(cleave_array_fft(y, 1, &back) == 0);
  EXPECT(cleave_array_full(back, found) == 0);
  for (int i = 0; i < size; ++i) EXPECT(cabs(found[i] - given[i]) < 1e-13);
  cleave_array_free(whole);
  cleave_array_free(x);
  cleave_array_free(y);
  cleave_array_free(back);
  end_case("transforms");
}

static void test_solution(cleave_mesh* mesh, int axes) {
  enum { n = 9, k = 2 };
  const int64_t square[2] = {n, n}, tall[2] = {n, k};
  const char* const all = axes == 1 ? "R" : "R,R";
  double a[n * n], b[n * k], x[n * k];
  for (int i = 0; i < n * n; ++i) a[i] = i * 7 % 10 + (i % (n + 1) == 0 ? 50 : 0);
  for (int i = 0; i < n * k; ++i) b[i] = i * 3 % 7;
  cleave_array *matrix, *right, *placed, *result;
  EXPECT(cleave_array_adopt(mesh, "float64", 2, square, all, a, &matrix) == 0);
  EXPECT(cleave_array_adopt(mesh, "float64", 2, tall, all, b, &right) == 0);
  EXPECT(cleave_array_redistribute(right, axes == 1 ? "S0" : "S0,R", &placed) == 0);
  if (cleave_array_solve(matrix, placed, 0, &result) != 0) {
    EXPECT(strstr(cleave_error(), "libscalapack-openmpi-dev") != NULL);
  } else {
    EXPECT(cleave_array_full(result, x) == 0);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < k; ++j) {
        double sum = 0;
        for (int l = 0; l < n; ++l) sum += a[i * n + l] * x[l * k + j];
        EXPECT(fabs(sum - b[i * k + j]) < 1e-11);
      }
    cleave_array_free(result);
  }
  cleave_array_free(matrix);
  cleave_array_free(right);
  cleave_array_free(placed);
  end_case("solutions");
}

#define EXPECT_ERROR(call, text)                     \
  do {                                               \
    EXPECT((call) != 0);                             \
    EXPECT(strstr(cleave_error(), (text)) != NULL); \
  } while (0)

static void test_errors(cleave_mesh* mesh) {
  const int64_t shape[2] = {4, 5}, negative[2] = {4, -5}, too_many[1] = {64};
  cleave_array *x = NULL, *y = NULL;
  cleave_mesh* other = NULL;
  EXPECT_ERROR(cleave_array_create(mesh, "float32", 2, shape, "S2", &x),
               "cleave_array_create: placements 'S2': expected a dimension from 0 to 1 at character "
               "2");
  EXPECT_ERROR(cleave_array_create(mesh, "float32", 2, shape, "S0,R", &x),
               "expected the end at character 3");
  EXPECT_ERROR(cleave_array_create(mesh, "float32", 2, shape, "C0:0", &x), "a block from 1 to");
  EXPECT_ERROR(cleave_array_create(mesh, "float32", 2, shape, "", &x), "expected R, S, B, C or O");
  EXPECT_ERROR(cleave_array_create(mesh, "double", 2, shape, "R", &x),
               "unknown element type 'double'; known are bool, int8");
  EXPECT_ERROR(cleave_array_create(mesh, "float32", 2, negative, "R", &x), "-5");
  EXPECT_ERROR(cleave_array_create(mesh, "float32", 9, shape, "R", &x), "9 dimensions");
  EXPECT_ERROR(cleave_array_create(NULL, "float32", 2, shape, "R", &x), "null pointer");
  EXPECT_ERROR(cleave_array_adopt(mesh, "float32", 2, shape, "R", NULL, &x), "null pointer");
  EXPECT_ERROR(cleave_mesh_create(MPI_Comm_c2f(MPI_COMM_WORLD), 1, too_many, &other), "64");
  EXPECT_ERROR(cleave_mesh_create(MPI_Comm_c2f(MPI_COMM_WORLD), 0, too_many, &other), "0");
  EXPECT(x == NULL && other == NULL); /* nothing was written */
  EXPECT(cleave_array_create(mesh, "float32", 2, shape, "C0:2", &x) == 0);
  int64_t begin[2];
  EXPECT_ERROR(cleave_array_local_begin(x, begin), "no box");
  EXPECT_ERROR(cleave_array_fft(x, 0, &y), "arrays of float32 are not supported");
  EXPECT_ERROR(cleave_array_redistribute(x, "P", &y), "expected R, S, B, C or O at character 1");
  EXPECT(cleave_array_redistribute(x, "S1", &y) == 0);
  EXPECT(cleave_array_local_begin(y, begin) == 0);
  const int64_t chunk = (5 + ranks - 1) / ranks;
  if (rank * chunk < 5) EXPECT(begin[0] == 0 && begin[1] == rank * chunk);
  cleave_array_free(x);
  cleave_array_free(y);
  cleave_array_free(NULL);
  end_case("errors");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int world = MPI_Comm_c2f(MPI_COMM_WORLD);
  const int64_t line[1] = {ranks}, grid[2] = {ranks % 2 == 0 ? 2 : 1, ranks % 2 == 0 ? ranks / 2 : ranks};
  const char* const on_line[] = {"R", "S0", "S1", "B0", "B1", "C0:2", "C1:1", "O0:0"};
  const char* const on_grid[] = {"R,R", "S0,S1", "S1,S0", "S0,S0", "B0,C1:2", "C0:1,C1:3", "R,O0:1"};
  cleave_mesh *one = NULL, *two = NULL;
  EXPECT(cleave_mesh_create(world, 1, line, &one) == 0);
  EXPECT(cleave_mesh_create(world, 2, grid, &two) == 0);
  test_redistribution(one, 1, line, on_line, 8);
  test_redistribution(two, 2, grid, on_grid, 7);
  test_transform(one, 1, "S0");
  test_transform(one, 1, "C1:2");
  test_transform(two, 2, "S2,R");
  test_solution(one, 1);
  test_solution(two, 2);
  test_errors(one);
  cleave_mesh_free(one);
  cleave_mesh_free(two);
  if (rank == 0) printf("cleave-cases: %d passed, %d failed, 0 skipped\n", passed, failed);
  MPI_Finalize();
  return failed != 0;
}
