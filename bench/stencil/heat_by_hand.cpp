// examples/heat in plain MPI: the same temperatures, options, output and picture, by messages and
// loops written by hand. tests/examples/heat.py compares the two.
//
//     mpirun -n 4 heat-by-hand --rows 200 --columns 400 --steps 2000 --mesh 2x2 --picture heat.ppm
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>

namespace {

/// Where a dimension of `extent` elements is cut for `parts` ranks: what one of them owns.
struct Range {
  int begin = 0, count = 0;
  Range(int extent, int parts, int part) {
    const int chunk = (extent + parts - 1) / parts;
    begin = std::min(part * chunk, extent);
    count = std::min(chunk, extent - begin);
  }
};

/// This rank's part with a row or column of ghosts at each side.
struct Field {
  int rows, columns;
  std::vector<double> values =
      std::vector<double>(std::size_t(rows + 2) * std::size_t(columns + 2));
  double& operator()(int i, int j) {
    return values[std::size_t(i + 1) * std::size_t(columns + 2) + std::size_t(j + 1)];
  }
};

/// The rank above, below, left or right (0 to 3); MPI_PROC_NULL at the domain's left and right, and
/// where one of the two ranks owns nothing.
int peer_of(MPI_Comm grid, std::array<int, 2> at, int side, const std::array<int, 2>& extents,
            const std::array<int, 2>& parts) {
  const auto d = std::size_t(side / 2);
  const int chunk = Range(extents[d], parts[d], 0).count;
  const int used = (extents[d] + chunk - 1) / chunk;  // the parts that are not empty
  int rank = MPI_PROC_NULL;
  if (at[d] >= used) return rank;
  at[d] += side % 2 == 0 ? -1 : 1;
  if (d == 0) at[d] = (at[d] + used) % used;
  if (at[d] >= 0 && at[d] < used) MPI_Cart_rank(grid, at.data(), &rank);
  return rank;
}

/// Sends the sides of a field, and receives its ghosts.
void exchange(Field& u, const std::array<int, 4>& peers, MPI_Comm grid, MPI_Datatype column) {
  const int m = u.rows, n = u.columns;
  double* const ghosts[] = {&u(-1, 0), &u(m, 0), &u(0, -1), &u(0, n)};
  const double* const sides[] = {&u(0, 0), &u(m - 1, 0), &u(0, 0), &u(0, n - 1)};
  std::array<MPI_Request, 8> requests{};
  for (int k = 0; k < 4; ++k) {
    const bool is_row = k < 2;
    const int count = is_row ? n : 1, peer = peers[std::size_t(k)];
    const MPI_Datatype type = is_row ? MPI_DOUBLE : column;
    MPI_Irecv(ghosts[k], count, type, peer, k ^ 1, grid, &requests[std::size_t(2 * k)]);
    MPI_Isend(sides[k], count, type, peer, k, grid, &requests[std::size_t(2 * k + 1)]);
  }
  MPI_Waitall(8, requests.data(), MPI_STATUSES_IGNORE);
}

void write_picture(const std::string& file, const std::vector<double>& u, int rows, int columns) {
  std::ofstream out(file, std::ios::binary);
  out << "P6\n" << columns << ' ' << rows << "\n255\n";
  for (const double x : u) {
    const double t = std::fmin(std::fmax(x, 0.0), 1.0);
    for (const double c :
         {std::fmin(2 * t, 1.0), 1 - std::fabs(2 * t - 1), std::fmin(2 - 2 * t, 1.0)})
      out.put(char(std::lround(255 * c)));
  }
}

/// Receives the parts of all ranks at rank 0.
std::vector<double> gather(Field& u, const std::array<int, 2>& extents,
                           const std::array<int, 2>& parts, MPI_Comm grid) {
  int rank = 0, size = 0;
  MPI_Comm_rank(grid, &rank);
  MPI_Comm_size(grid, &size);
  std::vector<double> packed, all, block;
  for (int i = 0; i < u.rows; ++i)
    for (int j = 0; j < u.columns; ++j) packed.push_back(u(i, j));
  if (rank != 0) {
    MPI_Send(packed.data(), int(packed.size()), MPI_DOUBLE, 0, 9, grid);
    return all;
  }
  all.resize(std::size_t(extents[0]) * std::size_t(extents[1]));
  for (int r = 0; r < size; ++r) {
    std::array<int, 2> at{};
    MPI_Cart_coords(grid, r, 2, at.data());
    const Range rows(extents[0], parts[0], at[0]), columns(extents[1], parts[1], at[1]);
    block.resize(std::size_t(rows.count) * std::size_t(columns.count));
    if (r == 0) block = packed;
    else MPI_Recv(block.data(), int(block.size()), MPI_DOUBLE, r, 9, grid, MPI_STATUS_IGNORE);
    auto from = block.begin();
    for (int i = 0; i < rows.count; ++i, from += columns.count)
      std::copy_n(from, columns.count,
                  all.begin() + std::ptrdiff_t(rows.begin + i) * extents[1] + columns.begin);
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::array<int, 2> extents{200, 400}, parts{}, periods{1, 0}, at{};
  int steps = 2000, rank = 0, size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  parts = {size, 1};
  std::string picture;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--rows") extents[0] = std::stoi(value);
    if (option == "--columns") extents[1] = std::stoi(value);
    if (option == "--steps") steps = std::stoi(value);
    if (option == "--picture") picture = value;
    if (option == "--mesh") std::sscanf(value.c_str(), "%dx%d", &parts[0], &parts[1]);
  }
  MPI_Comm grid = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 2, parts.data(), periods.data(), 0, &grid);
  MPI_Comm_rank(grid, &rank);
  MPI_Cart_coords(grid, rank, 2, at.data());
  const Range rows(extents[0], parts[0], at[0]), columns(extents[1], parts[1], at[1]);
  std::array<int, 4> peers{};
  for (int k = 0; k < 4; ++k) peers[std::size_t(k)] = peer_of(grid, at, k, extents, parts);
  MPI_Datatype column = MPI_DATATYPE_NULL;
  MPI_Type_vector(rows.count, 1, columns.count + 2, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);

  Field u{rows.count, columns.count}, v{rows.count, columns.count};
  for (int step = 0; step < steps; ++step, std::swap(u.values, v.values)) {
    exchange(u, peers, grid, column);
    for (int i = 0; i < rows.count && columns.count > 0; ++i) {
      if (columns.begin == 0) u(i, -1) = rows.begin + i < extents[0] / 4 ? 1.0 : 0.25;
      if (columns.begin + columns.count == extents[1]) u(i, columns.count) = 0;
    }
    for (int i = 0; i < rows.count; ++i)
      for (int j = 0; j < columns.count; ++j)
        v(i, j) =
            u(i, j) + 0.2 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4 * u(i, j));
  }

  const std::vector<double> all = gather(u, extents, parts, grid);
  if (rank == 0) {
    const int row = extents[0] / 8;
    for (int j = 0; j < extents[1]; j += (extents[1] + 7) / 8)
      std::printf("u(%d, %d) = %.17g\n", row, j, all[std::size_t(row * extents[1] + j)]);
    if (!picture.empty()) write_picture(picture, all, extents[0], extents[1]);
  }
  MPI_Type_free(&column);
  MPI_Comm_free(&grid);
  MPI_Finalize();
}
