// Replicated and fully sharded modules on slices of a mesh and with each rank's own batch, against
// training by plain loops.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/parallel.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

namespace own_batch {

constexpr int inputs = 4, hidden = 6, outputs = 2;
constexpr double rate = 0.3;
using Grid = DeviceMesh<Host, dp, tp>;

/// Row `row` of the global batch: the inputs, then the targets.
double input(int row, int k) { return std::sin(double(1 + 7 * row + 3 * k)); }
double target(int row, int k) { return std::cos(double(2 + 5 * row + k)); }
/// Initial parameters, by their position in the model.
double initial(int parameter, int i) {
  return 0.4 * std::sin(double(parameter + 1) * double(i + 2));
}

/// Parameters of tanh between two linear layers, as plain arrays in the order of the model.
using Arrays = std::vector<std::vector<double>>;
Arrays initial_arrays() {
  Arrays p{std::vector<double>(hidden * inputs), std::vector<double>(hidden),
           std::vector<double>(outputs * hidden), std::vector<double>(outputs)};
  for (int k = 0; k < 4; ++k)
    for (std::size_t i = 0; i < p[std::size_t(k)].size(); ++i)
      p[std::size_t(k)][i] = initial(k, int(i));
  return p;
}

/// Adds the gradient of `weight` times the squared errors of one row.
void add_gradient(const Arrays& p, int row, double weight, Arrays& g) {
  double h[hidden], dh[hidden] = {};
  for (int j = 0; j < hidden; ++j) {
    double s = p[1][std::size_t(j)];
    for (int k = 0; k < inputs; ++k) s += p[0][std::size_t(j * inputs + k)] * input(row, k);
    h[j] = std::tanh(s);
  }
  for (int o = 0; o < outputs; ++o) {
    double y = p[3][std::size_t(o)];
    for (int j = 0; j < hidden; ++j) y += p[2][std::size_t(o * hidden + j)] * h[j];
    const double dy = 2 * weight * (y - target(row, o));
    g[3][std::size_t(o)] += dy;
    for (int j = 0; j < hidden; ++j) {
      g[2][std::size_t(o * hidden + j)] += dy * h[j];
      dh[j] += dy * p[2][std::size_t(o * hidden + j)];
    }
  }
  for (int j = 0; j < hidden; ++j) {
    const double ds = dh[j] * (1 - h[j] * h[j]);
    g[1][std::size_t(j)] += ds;
    for (int k = 0; k < inputs; ++k) g[0][std::size_t(j * inputs + k)] += ds * input(row, k);
  }
}

/// Steps of gradient descent on one rank. Batch r has rows[r] rows; the gradient is the average
/// over the batches of that of the batch's mean error.
Arrays trained(const std::vector<int>& rows, int steps) {
  Arrays p = initial_arrays();
  for (int step = 0; step < steps; ++step) {
    Arrays g = p;
    for (auto& array : g) std::fill(array.begin(), array.end(), 0.0);
    int row = 0;
    for (const int count : rows)
      for (int i = 0; i < count; ++i)
        add_gradient(p, row++, 1.0 / (double(rows.size()) * count * outputs), g);
    for (std::size_t k = 0; k < p.size(); ++k)
      for (std::size_t i = 0; i < p[k].size(); ++i) p[k][i] -= rate * g[k][i];
  }
  return p;
}

/// A layer with a parameter and a buffer.
template <class W = nn::Lazy<double, 1>, class B = nn::Buffer<Tensor<double, 2>>>
struct Scaled {
  W weight;
  B shift;
  static constexpr nn::names members{"weight", "shift"};
  auto operator()(const auto& x) const { return x * weight + shift.value; }
};

/// Rows [begin, begin + count) of the global batch.
Tensor<double, 2> rows_of(int begin, int count, int width, double (*f)(int, int)) {
  const Tensor<double, 2> x({count, width});
  for (int i = 0; i < count; ++i)
    for (int k = 0; k < width; ++k) x.data()[i * width + k] = f(begin + i, k);
  return x;
}

/// The model with the initial parameters, on one device.
auto network() {
  RandomState unused{0, 0};
  const auto m = nn::make(nn::mlp<double>(inputs, hidden, outputs, nn::Tanh{}), unused);
  int k = 0;
  nn::parameters(m, [&](const auto& x) {
    for (index_t i = 0; i < x.size(); ++i) x.data()[i] = initial(k, int(i));
    ++k;
  });
  return m;
}

/// The model on a slice over tp. Its hidden layer is sharded.
auto network_over_tp(const DeviceMesh<Host, tp>& mesh) {
  return parallelize_module(network(), mesh,
                            on("up"_path, ColwiseParallel{}.input_layouts(Replicate{})),
                            on("down"_path, RowwiseParallel{}));
}

/// Trains for some steps; `x` and `t` are what this rank passes.
void train(const auto& model, const auto& x, const auto& t, int steps) {
  auto optimizer = nn::sgd({.learning_rate = rate});
  for (int i = 0; i < steps; ++i) {
    zero_grad(model);
    backward(mean(square(model(x) - t)));
    optimizer.step(model);
  }
}

/// The largest difference of the model's parameters from plain arrays.
double off(const auto& model, const Arrays& expected) {
  double worst = 0;
  std::size_t k = 0;
  nn::parameters(model, [&](const auto& p) {
    const auto whole = p.value().full_tensor();
    REQUIRE(std::size_t(whole.size()) == expected[k].size());
    for (std::size_t i = 0; i < expected[k].size(); ++i)
      if (const double d = std::abs(whole.data()[i] - expected[k][i]); !(d <= worst)) worst = d;
    ++k;
  });
  CHECK(k == expected.size());
  return worst;
}

/// The rows that come before those of batch r.
int rows_before(const std::vector<int>& rows, index_t r) {
  int begin = 0;
  for (index_t i = 0; i < r; ++i) begin += rows[std::size_t(i)];
  return begin;
}

/// Runs f(mesh) for dp x tp ranks.
void on_grids(const auto& f) {
  const auto run = [&](index_t along_dp, index_t along_tp) {
    on_ranks({int(along_dp * along_tp)},
             [&](World& world) { f(init_device_mesh<dp, tp>(world, {along_dp, along_tp})); });
  };
  run(1, 2);
  run(2, 1);
  run(2, 2);
  run(3, 1);
  run(4, 1);
}

}  // namespace own_batch

}  // namespace

TEST_CASE("with each rank's own batch gradients are averages, of uneven batches too") {
  using namespace own_batch;
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    std::vector<int> rows;
    for (int r = 0; r < world.size(); ++r) rows.push_back(3 + 2 * r);
    const int begin = rows_before(rows, world.rank()), count = rows[std::size_t(world.rank())];
    const auto x = rows_of(begin, count, inputs, input), t = rows_of(begin, count, outputs, target);
    const Arrays expected = trained(rows, 4);

    const auto replicated = requires_grad(replicate(network(), mesh, {.bucket_bytes = {100, 100}}));
    train(replicated, x, t, 4);
    CHECK(off(replicated, expected) < 1e-12);

    const auto sharded = requires_grad(fully_shard(network(), mesh, "up"_path, "down"_path));
    train(sharded, x, t, 4);
    CHECK(off(sharded, expected) < 1e-12);

    const auto kept = requires_grad(
        fully_shard(network(), mesh, FullyShardOptions<>{.reshard_after_forward = false}));
    train(kept, x, t, 4);
    CHECK(off(kept, expected) < 1e-12);
  });
}

TEST_CASE("a batch on the axis is one global batch; gradients are sums") {
  using namespace own_batch;
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const int rows = 7;  // in uneven shards
    const auto x = distribute_tensor(rows_of(0, rows, inputs, input), mesh, Shard<0>{});
    const auto t = distribute_tensor(rows_of(0, rows, outputs, target), mesh, Shard<0>{});
    const Arrays expected = trained({rows}, 4);
    const auto replicated = requires_grad(replicate(network(), mesh));
    train(replicated, x, t, 4);
    CHECK(off(replicated, expected) < 1e-12);
    const auto sharded = requires_grad(fully_shard(network(), mesh, "up"_path));
    train(sharded, x, t, 4);
    CHECK(off(sharded, expected) < 1e-12);
  });
}

TEST_CASE("gradients of own batches accumulate without synchronisation") {
  using namespace own_batch;
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const std::vector<int> rows(std::size_t(world.size()), 4);
    const int begin = rows_before(rows, world.rank());
    const Arrays expected = trained(rows, 1);
    const auto check = [&](const auto& model) {
      for (const int half : {0, 1}) {
        set_requires_gradient_sync(model, half == 1);
        const auto x = rows_of(begin + 2 * half, 2, inputs, input);
        const auto t = rows_of(begin + 2 * half, 2, outputs, target);
        backward(mean(square(model(x) - t)) * 0.5);
      }
      nn::sgd({.learning_rate = rate}).step(model);
      CHECK(off(model, expected) < 1e-12);
    };
    check(requires_grad(replicate(network(), mesh)));
    check(requires_grad(fully_shard(network(), mesh, "up"_path)));
  });
}

TEST_CASE("a slice shards the layers, another one replicates or shards them over the batch") {
  using namespace own_batch;
  on_grids([](const Grid& mesh) {
    std::vector<int> rows;
    for (int r = 0; r < mesh.extent(dp{}); ++r) rows.push_back(2 + r);
    const index_t r = mesh.coordinate(dp{});
    const int begin = rows_before(rows, r), count = rows[std::size_t(r)];
    const auto x = rows_of(begin, count, inputs, input), t = rows_of(begin, count, outputs, target);
    const auto on_tp = [&](const auto& part) {
      return distribute_tensor(part, mesh[tp{}], Replicate{});
    };
    const Arrays expected = trained(rows, 3);
    const auto check = [&](const auto& model) {
      train(model, x, on_tp(t), 3);  // a style places the input
      CHECK(off(model, expected) < 1e-12);
    };
    check(requires_grad(replicate(network_over_tp(mesh[tp{}]), mesh[dp{}])));
    check(replicate(requires_grad(network_over_tp(mesh[tp{}])), mesh[dp{}], dp{}));
    check(requires_grad(fully_shard(network_over_tp(mesh[tp{}]), mesh[dp{}], "up"_path)));
    check(
        requires_grad(replicate(fully_shard(network_over_tp(mesh[tp{}]), mesh[dp{}]), mesh[dp{}])));

    const auto model = requires_grad(replicate(network_over_tp(mesh[tp{}]), mesh[dp{}]));
    train(model, on_tp(x), on_tp(t), 3);
    CHECK(off(model, expected) < 1e-12);
    CHECK(nn::describe(model).find("(Replicate, Shard(0)) on " + mesh.describe()) !=
          std::string::npos);
  });
}

TEST_CASE("parameters of slices take a global batch on the mesh") {
  using namespace own_batch;
  on_grids([](const Grid& mesh) {
    const int rows = 5;
    const auto x =
        distribute_tensor(rows_of(0, rows, inputs, input), mesh, Shard<0>{}, Replicate{});
    const auto t =
        distribute_tensor(rows_of(0, rows, outputs, target), mesh, Shard<0>{}, Replicate{});
    const Arrays expected = trained({rows}, 3);
    const auto check = [&](const auto& model) {
      train(model, x, t, 3);
      CHECK(off(model, expected) < 1e-12);
    };
    check(requires_grad(replicate(network_over_tp(mesh[tp{}]), mesh[dp{}])));
    check(requires_grad(fully_shard(network_over_tp(mesh[tp{}]), mesh[dp{}], "down"_path)));
    // parameters on the whole mesh, and one of its slices
    check(requires_grad(
        replicate(parallelize_module(network(), mesh, tp{}, on("up"_path, ColwiseParallel{}),
                                     on("down"_path, RowwiseParallel{})),
                  mesh[dp{}])));
  });
}

TEST_CASE("slices join in the order of the wrapper and the parameters, whatever the mesh's order") {
  using namespace own_batch;
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp, dp>(world, {2, world.size() / 2});
    const std::vector<int> rows(std::size_t(mesh.extent(dp{})), 3);
    const int begin = rows_before(rows, mesh.coordinate(dp{}));
    const auto x = rows_of(begin, 3, inputs, input), t = rows_of(begin, 3, outputs, target);
    const auto on_tp = distribute_tensor(t, mesh[tp{}], Replicate{});
    const auto sharded =
        requires_grad(fully_shard(network_over_tp(mesh[tp{}]), mesh[dp{}], "up"_path));
    const Grid& joined = sharded.up.weight.mesh();
    CHECK(joined.coordinate(dp{}) == mesh.coordinate(dp{}));
    CHECK(joined.coordinate(tp{}) == mesh.coordinate(tp{}));
    train(sharded, x, on_tp, 3);
    CHECK(off(sharded, trained(rows, 3)) < 1e-12);

    const auto cube = init_device_mesh<pp, dp, tp>(world, {1, world.size() / 2, 2});
    const auto replicated =
        requires_grad(replicate(network_over_tp(cube[tp{}]), submesh(cube, dp{})));
    const std::vector<int> part(std::size_t(cube.extent(dp{})), 3);
    const int first = rows_before(part, cube.coordinate(dp{}));
    train(replicated, rows_of(first, 3, inputs, input),
          distribute_tensor(rows_of(first, 3, outputs, target), cube[tp{}], Replicate{}), 3);
    CHECK(off(replicated, trained(part, 3)) < 1e-12);
  });
}

TEST_CASE("buffers are used with a rank's own batch too, and one mesh axis needs no name") {
  using namespace own_batch;
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const Scaled<> m{{{2}, nn::constant(3.0)}, {rows_of(0, 1, 2, target)}};
    const auto model = requires_grad(replicate(m, mesh));
    const auto x = rows_of(world.rank(), 1, 2, input);
    const auto y = model(x);
    backward(sum(y));
    for (int k = 0; k < 2; ++k) {
      double mean_of_ranks = 0;
      for (int r = 0; r < world.size(); ++r) mean_of_ranks += input(r, k) / world.size();
      CHECK(std::abs(y.value()(0, k) - (3 * input(world.rank(), k) + target(0, k))) < 1e-12);
      CHECK(std::abs(grad(model.weight).to_local()(k) - mean_of_ranks) < 1e-12);
    }
    const Along along{mesh};
    CHECK(along.index == 0);
    TensorParallelRNGTracker tracker(mesh);
    parallelize_module(nn::linear(4, 4), mesh, on(""_path, ColwiseParallel{}));
  });
}

TEST_CASE("slices of other meshes are an error that names both") {
  using namespace own_batch;
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const auto pair = init_device_mesh<dp>(
        world, {2}, world.rank() % 2 == 0 ? std::vector{0, 2} : std::vector{1, 3});
    const std::string tp_ranks = world.rank() < 2 ? "tp=2 (ranks 0, 1)" : "tp=2 (ranks 2, 3)";
    const std::string dp_ranks = world.rank() % 2 == 0 ? "dp=2 (ranks 0, 2)" : "dp=2 (ranks 1, 3)";
    const auto m = network_over_tp(mesh[tp{}]);
    for (const std::string& text :
         {error_of([&] { replicate(m, pair); }), error_of([&] { fully_shard(m, pair); })}) {
      CHECK_MESSAGE(text.find(tp_ranks) != std::string::npos, text);
      CHECK_MESSAGE(text.find(dp_ranks) != std::string::npos, text);
    }
    const auto whole = parallelize_module(network(), mesh, tp{});
    const auto line = init_device_mesh<dp>(world, {4});
    const std::string text = error_of([&] { replicate(whole, line); });
    CHECK_MESSAGE(text.find("dp=4 (ranks 0, 1, 2, 3) is not a slice") != std::string::npos, text);
    CHECK_MESSAGE(text.find("dp=2 x tp=2 (ranks 0, 1, 2, 3)") != std::string::npos, text);
  });
}
