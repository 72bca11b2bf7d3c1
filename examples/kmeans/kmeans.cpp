// k-means on a mesh of ranks: Lloyd's algorithm on 1,797 handwritten digits.
//
//     kmeans --data examples/kmeans/digits.npy --k 10 --mesh 2x2 --ranks 4
//
// Compiled by nvcc with KMEANS_CUDA=1 it also accepts `--device cuda`; nothing else differs.
//
// The points are split twice: their rows over the axis dp, their features over the axis tp. The
// placements on (dp, tp) are in the type of a tensor; comments repeat them, as in x[S0,S1]: S0 is
// Shard<0>, R Replicate, P Partial. An iteration communicates twice, where a P becomes an R, and
// nowhere else.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <cleave/cleave.hpp>
#if defined(KMEANS_CUDA)
#include <cleave/cuda.hpp>
#endif

#include "options.hpp"
#include "report.hpp"

using namespace cleave;
using axes::dp;
using axes::tp;

namespace {

/// The options, and the contents of the files.
struct Input {
  kmeans::Options options{};
  Tensor<double, 2> points{};        ///< [n, features]
  Tensor<std::uint8_t, 1> labels{};  ///< [n], or empty
};

/// @throws std::exception for invalid input
Input read(int argc, char** argv) {
  Input input;
  input.options = kmeans::parse(argc, argv);
  input.points = load_npy_as<double, 2>(input.options.data);
  const index_t n = input.points.extent(0);
  if (input.options.k > n)
    throw kmeans::UsageError("--k " + std::to_string(input.options.k) + " is more than the " +
                             std::to_string(n) + " points of " + input.options.data);
  if (input.options.labels.empty()) return input;
  input.labels = load_npy<std::uint8_t, 1>(input.options.labels);
  if (input.labels.size() != n)
    throw kmeans::UsageError(input.options.labels + " has " + std::to_string(input.labels.size()) +
                             " labels for " + std::to_string(n) + " points");
  return input;
}

/// |x - c|^2, given |x|^2, x.c and |c|^2. Sums of addends of these three are addends of the
/// distance, as the row states: the reduction of the result can be deferred.
struct Distance {
  static constexpr const char* partials = "sum,sum,sum->sum";
  CLEAVE_HOST_DEVICE double operator()(double square, double product, double length) const {
    return square - 2 * product + length;
  }
};

/// 1 for a point that has moved to another cluster.
struct Moved {
  CLEAVE_HOST_DEVICE double operator()(index_t from, index_t to) const {
    return from == to ? 0.0 : 1.0;
  }
};

/// The mean of a cluster's points; a cluster without points stays where it was.
struct Centroid {
  CLEAVE_HOST_DEVICE double operator()(double total, double count, double old) const {
    return count > 0 ? total / count : old;
  }
};

/// The centroids as pictures, if they are square, and how well clusters agree with labels.
void print_clusters(const Input& input, const Tensor<double, 2>& pictures,
                    const Tensor<index_t, 1>& clusters) {
  const index_t k = input.options.k;
  const kmeans::Census census(clusters, input.labels, k);
  const bool labelled = input.labels.size() > 0;
  const auto side = index_t(std::lround(std::sqrt(double(pictures.extent(1)))));
  if (side * side == pictures.extent(1)) {
    std::vector<std::string> captions;
    for (index_t c = 0; c < k; ++c)
      captions.push_back("cluster " + std::to_string(c) +
                         (labelled ? ": " + std::to_string(census.label_of(c)) : ""));
    kmeans::draw(pictures, side, captions);
  }
  if (labelled) std::printf("\npurity %.6f\n", census.purity());
}

/// Runs on every rank; the first one prints.
template <class Device>
void cluster(World& world, Device device, const Input& input) {
  const index_t k = input.options.k;
  const bool prints = world.rank() == 0;
  const auto mesh =
      init_device_mesh<dp, tp>(world, kmeans::mesh_extents(input.options, world.size()), device);

  // Grey values are small integers: in float64 their sums are exact in any order, so the centroids
  // have the same bits on every mesh. The first k points are the initial centroids.
  // points[S0,S1], centroids[R,S1], nearest[S0,R], ones[S0,R], squares[S0,P]
  const auto points = distribute_tensor(input.points, mesh, Shard<0>{}, Shard<1>{});
  auto centroids = distribute_tensor(input.points.slice(0, 0, k), mesh, Replicate{}, Shard<1>{});
  auto nearest = full<index_t>({points.extent(0)}, index_t{-1}, mesh, Shard<0>{}, Replicate{});
  const auto ones = full<double>({points.extent(0)}, 1.0, mesh, Shard<0>{}, Replicate{});
  const auto squares = unsqueeze(sum(square(points), dim<1>{}), dim<1>{});

  kmeans::Stopwatch stopwatch;
  for (index_t iteration = 1; iteration <= input.options.iterations; ++iteration) {
    const CommTrace trace(world);
    stopwatch.start();

    // |x - c|^2 = |x|^2 - 2 x.c + |c|^2: every rank of tp has the addend of its features
    // products[S0,P] = points[S0,S1] . centroids[R,S1]^T
    // lengths[R,P]   = sum of centroids[R,S1]^2 over features
    // distances[S0,R]: all-reduce over tp
    const auto products = matmul(points, transpose(centroids));
    const auto lengths = sum(square(centroids), dim<1>{});
    auto partial = map(Distance{}, squares, products, lengths);
    const std::string addends = to_string(partial);
    const auto distances = std::move(partial).redistribute(Shard<0>{}, Replicate{});  // in place

    // every point joins the nearest cluster, the first of equally near ones
    // nearest[S0,R] = argmin of distances[S0,R]
    const auto before = nearest;
    nearest = argmin(distances, dim<1>{});
    const auto moves = map(Moved{}, before, nearest);

    // sums over the points of each rank of dp, by cluster
    // part_sums[P,S1]: row c is the sum of the points[S0,S1] whose nearest[S0,R] is c
    // part_counts[P,R]: likewise, with a one for each point;  the others are [P,R], too
    // sums[R,S1], counts[R,R], inertia[R,R], moved[R,R]: one all-reduce over dp for all of them
    const auto part_sums = index_add(points, dim<0>{}, nearest, k);
    const auto part_counts = index_add(ones, dim<0>{}, nearest, k);
    const auto part_inertia = sum(min(distances, dim<1>{}));
    const auto part_moved = sum(moves);
    const auto [sums, counts, inertia, moved] =
        reduce_partials(part_sums, part_counts, part_inertia, part_moved);

    // centroids[R,S1] = sums[R,S1] / counts[R,R]
    centroids = map(Centroid{}, sums, unsqueeze(counts, dim<1>{}), centroids);
    stopwatch.stop();

    if (prints && iteration == 1) {
      const auto print = [](const char* name, const std::string& text) {
        std::printf("  %-13s%s\n", name, text.c_str());
      };
      const auto show = [&](const char* name, const auto& x) { print(name, to_string(x)); };
      std::printf("placements\n");
      show("points", points);
      show("centroids", centroids);
      show("products", products);
      print("partial", addends);
      show("distances", distances);
      show("nearest", nearest);
      show("part_sums", part_sums);
      show("part_counts", part_counts);
      show("sums", sums);
      std::printf("\nranks that own points[rows, columns]\n%s\n",
                  visualize_sharding(points).c_str());
      std::printf("iteration         inertia  moved  received by rank 0\n");
    }
    if (prints)
      std::printf("%9d  %14.4f  %5.0f  %s\n", int(iteration), inertia.to_local().item(),
                  moved.to_local().item(), kmeans::describe(trace).c_str());
    if (moved.to_local().item() == 0) break;
  }

  if (prints && input.options.time)
    std::printf("\ntime per iteration %.3f ms\n", 1e3 * stopwatch.median());

  const Tensor<double, 2> pictures = centroids.full_tensor().to(Host{});
  const Tensor<index_t, 1> clusters = nearest.full_tensor().to(Host{});
  if (prints) print_clusters(input, pictures, clusters);
}

}  // namespace

int main(int argc, char** argv) {
  Input input;
  std::string problem;
  try {
    input = read(argc, argv);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const auto main_of_rank = [&](World& world, auto device) {
    try {
      if (!problem.empty()) throw kmeans::UsageError(problem);
      cluster(world, device, input);
      return 0;
    } catch (const kmeans::UsageError& error) {  // the same on every rank
      if (world.rank() == 0) std::fprintf(stderr, "kmeans: %s\n", error.what());
      return 2;
    }
  };
#if defined(KMEANS_CUDA)
  return run<Host, Cuda>(argc, argv, main_of_rank);
#else
  return run<Host>(argc, argv, main_of_rank);
#endif
}
