// Data parallelism: the results of one rank, exactly one all-reduce per bucket, overlap, and
// errors.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/parallel.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

constexpr std::uint64_t seed = 3;
constexpr index_t rows = 10;  // not divisible by four ranks
using Mesh = DeviceMesh<Host, dp, tp>;

Tensor<double, 2> noise(index_t columns, std::uint64_t draw) {
  RandomState state{seed, 1000 + draw};
  return randn<double>({rows, columns}, state);
}

auto network() { return nn::mlp<double>(5, 6, 3, nn::Tanh{}); }

/// A network with its hidden layer sharded over tp.
auto placed_network(const World& world, const Mesh& mesh) {
  manual_seed(world, seed);
  const auto lazy = network();
  const auto up = nn::place(lazy.up, mesh, Replicate{}, Shard<0>{});
  const auto weight = nn::place(lazy.down.weight, mesh, Replicate{}, Shard<1>{});
  return nn::Mlp{up, nn::Tanh{}, nn::Linear{weight, nn::place(lazy.down.bias, mesh)}};
}
auto network_alone() {
  RandomState state{seed, 0};
  return requires_grad(nn::make(network(), state));
}

/// Buckets of one or two parameters.
const ReplicateOptions small_buckets{.bucket_bytes = {.first = 16, .others = 200}};

/// The loss averaged over the whole batch; x may hold some of its rows.
auto loss_of(const auto& model, const auto& x, const auto& target) {
  return sum(square(model(x) - target)) * (1.0 / double(rows));
}

template <class X>
auto whole(const X& x) {
  if constexpr (is_dtensor<X>) return x.full_tensor();
  else return x;
}

/// The largest difference between `of` the parameters of two modules.
double distance(const auto& a, const auto& b, const auto& of) {
  std::vector<double> x, y;
  const auto collect = [&](const auto& m, std::vector<double>& to) {
    nn::parameters(m, [&](const auto& p) {
      const auto dense = whole(of(p)).clone();
      to.insert(to.end(), dense.data(), dense.data() + dense.size());
    });
  };
  collect(a, x);
  collect(b, y);
  REQUIRE(x.size() == y.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (const double off = std::abs(x[i] - y[i]); !(off <= worst)) worst = off;
  return worst;
}
constexpr auto values = [](const auto& p) { return p.value(); };
constexpr auto gradients = [](const auto& p) { return grad(p); };

/// A batch, and its placement on the mesh with rows sharded over dp.
struct Batch {
  Tensor<double, 2> x = noise(5, 0), target = noise(3, 1);

  static auto on(const Tensor<double, 2>& t, const Mesh& mesh) {
    return distribute_tensor(t, mesh, Shard<0>{}, Replicate{});
  }
};

/// Runs f on several meshes of dp x tp ranks.
void on_meshes(const auto& f) {
  const auto run = [&](index_t along_dp, index_t along_tp) {
    on_ranks({int(along_dp * along_tp)}, [&](World& world) {
      const auto mesh = init_device_mesh<dp, tp>(world, {along_dp, along_tp});
      f(world, mesh);
    });
  };
  run(1, 1);
  run(2, 1);
  run(4, 1);
  run(2, 2);
}

index_t sums_over_dp(const CommTrace& trace) {
  return trace.count(CollectiveKind::all_reduce, "dp");
}

}  // namespace

TEST_CASE("buckets: of one type each, small first, in the order in which their last ones stand") {
  using parallel::BucketEntry;
  const std::vector<BucketEntry> entries{
      {DType::float32, 40}, {DType::float32, 40}, {DType::float64, 8}, {DType::float32, 300},
      {DType::float32, 10}, {DType::float64, 0},  {DType::float32, 20}};
  const auto cut = [&](const std::vector<int>& order) {
    std::string text;
    for (const auto& bucket : parallel::arrange_buckets(entries, order, {50, 100})) {
      for (const int number : bucket) text += std::to_string(number) + " ";
      text += "|";
    }
    return text;
  };
  CHECK(cut(parallel::reversed_order(7)) == "6 4 3 |5 2 |1 0 |");
  CHECK(cut({2, 0, 1, 4, 3, 6, 5}) == "0 1 |4 3 |6 |2 5 |");
  CHECK(cut({}) == "");
}

TEST_CASE("twenty steps are one rank's, with as many all-reduces over dp as there are buckets") {
  on_meshes([](const World& world, const Mesh& mesh) {
    const auto alone = network_alone();
    const auto model =
        requires_grad(replicate(placed_network(world, mesh), mesh, dp{}, small_buckets));
    auto step_alone = nn::momentum_sgd(alone, {.learning_rate = 0.1});
    auto step = nn::momentum_sgd(model, {.learning_rate = 0.1});
    const Batch batch;
    const auto x = Batch::on(batch.x, mesh), target = Batch::on(batch.target, mesh);
    CHECK(model.bucket_count() >= 2);
    double first = 0, last = 0;
    for (int i = 0; i < 20; ++i) {
      const auto loss_alone = loss_of(alone, batch.x, batch.target);
      const auto loss = loss_of(model, x, target);
      last = loss_alone.value().item();
      if (i == 0) first = last;
      CHECK(std::abs(loss.value().item() - last) < 1e-12);
      zero_grad(alone);
      zero_grad(model);
      backward(loss_alone);
      {
        CommTrace trace(world);
        const index_t buckets = model.bucket_count();
        backward(loss);
        CHECK(sums_over_dp(trace) == (mesh.extent(dp{}) > 1 ? buckets : 0));
        CHECK(trace.count(CollectiveKind::broadcast) == (i == 0 && mesh.extent(dp{}) > 1));
      }
      CHECK(distance(alone, model, gradients) < 1e-12);
      CHECK(std::abs(nn::clip_grad_norm_(alone, 0.5) - nn::clip_grad_norm_(model, 0.5)) < 1e-12);
      step_alone.step(alone);
      step.step(model);
    }
    CHECK(last < 0.8 * first);
    CHECK(distance(alone, model, values) < 1e-12);
  });
}

TEST_CASE("without synchronisation gradients stay where they are; the next sum has them all") {
  on_meshes([](const World& world, const Mesh& mesh) {
    const auto alone = network_alone();
    const auto model =
        requires_grad(replicate(placed_network(world, mesh), mesh, dp{}, small_buckets));
    const Batch batch;
    const auto back = [&](index_t begin, index_t end) {
      const auto x = batch.x.slice(0, begin, end), target = batch.target.slice(0, begin, end);
      backward(loss_of(model, Batch::on(x.clone(), mesh), Batch::on(target.clone(), mesh)));
    };
    const index_t sums = mesh.extent(dp{}) > 1 ? 1 : 0;
    backward(loss_of(alone, batch.x, batch.target));

    model.set_requires_gradient_sync(false);
    CHECK(!model.requires_gradient_sync());
    CommTrace trace(world);
    back(0, 3);
    zero_grad(model);  // drops unreduced gradients
    back(0, 4);
    back(4, 7);  // two rows on some ranks, none on others
    CHECK(sums_over_dp(trace) == 0);
    CHECK(!has_grad(model.up.weight));
    model.set_requires_gradient_sync(true);
    back(7, 8);
    CHECK(sums_over_dp(trace) == sums * model.bucket_count());
    const auto kept = grad(model.up.weight);
    const double before = whole(kept)(0, 0);
    back(8, rows);  // added to gradients already summed
    CHECK(sums_over_dp(trace) == 2 * sums * model.bucket_count());
    CHECK(distance(alone, model, gradients) < 1e-12);
    CHECK(whole(kept)(0, 0) == before);
  });
}

TEST_CASE("the first bucket is under way before the last gradient is complete") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size(), 1});
    const auto model =
        requires_grad(replicate(placed_network(world, mesh), mesh, dp{}, small_buckets));
    std::atomic<int> sent{0};
    model.register_comm_hook([&](const GradientBucket& bucket) {
      CHECK(bucket.number == sent.load());
      AllReduce{}(bucket);
      ++sent;
    });
    const Batch batch;
    const auto x = requires_grad(Batch::on(batch.x, mesh));  // its gradient needs all layers'
    const auto target = Batch::on(batch.target, mesh);
    bool came = false;
    on_gradient(x, [&](const auto&) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (sent.load() == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      came = sent.load() > 0 && sent.load() < int(model.bucket_count()) + 1;
    });
    for (int step = 0; step < 3; ++step) {
      sent = 0;
      came = false;
      backward(loss_of(model, x, target));
      CHECK(came);
      CHECK(sent.load() == int(model.bucket_count()));
    }
  });
}

namespace {

/// Two layers; a flag selects whether both are used.
template <class A = nn::Linear<>, class B = nn::Linear<>,
          class Seen = nn::Buffer<Tensor<double, 1>>>
struct Branches {
  A a;
  B b;
  Seen seen;
  static constexpr nn::names members{"a", "b", "seen"};

  auto operator()(const auto& x, bool only_a) const {
    const auto y = a(x);
    return only_a ? sum(y) : sum(b(y));
  }
};
auto branches() {
  using Layer = decltype(nn::linear<double>(3, 3));
  return Branches<Layer, Layer, nn::Buffer<Tensor<double, 1>>>{
      nn::linear<double>(3, 3), nn::linear<double>(3, 3), {Tensor<double, 1>({2}, {1, 2})}};
}

}  // namespace

TEST_CASE("parameters that the loss does not depend on: an error that names them, or an option") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = randn<double>({6, 3}, mesh, Shard<0>{});
    const auto strict = requires_grad(replicate(branches(), mesh, dp{}));
    const std::string error = error_of([&] { backward(strict(x, true)); });
    CHECK(contains(error, "replicate: backward computed no gradient for b.weight, b.bias; if"));
    CHECK(!has_grad(strict.a.weight));
    backward(strict(x, false));  // the failure left nothing behind
    CHECK(has_grad(strict.b.weight));

    const auto lenient =
        requires_grad(replicate(branches(), mesh, dp{}, {.find_unused_parameters = true}));
    backward(lenient(x, true));
    CHECK(has_grad(lenient.a.weight));
    CHECK(!has_grad(lenient.b.weight));
    if (world.size() > 1) {  // used on the last rank only
      zero_grad(lenient);
      const auto part = Tensor<double, 2>({2, 3}, {1, 2, 3, 4, 5, 6});
      const auto y = from_local(part, mesh, Shard<0>{});
      const bool only_a = world.rank() + 1 < world.size();
      const auto& b = lenient.b;
      const auto scores = lenient.a(y);
      const auto loss = only_a ? sum(scores) : sum(b(scores));
      backward(loss);
      CHECK(has_grad(b.weight));
      CHECK(whole(grad(b.bias))(0) == 2);  // two rows of ones, from one rank
    }
  });
}

TEST_CASE("ignored parameters are summed at once, and are in no bucket") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = randn<double>({6, 3}, mesh, Shard<0>{});
    const auto model =
        requires_grad(replicate(branches(), mesh, dp{}, {.ignored = {"?.bias", "b"}}));
    CHECK(model.bucket_count() == 1);
    CommTrace trace(world);
    backward(model(x, false));
    CHECK(trace.count(CollectiveKind::all_reduce) == 4);  // three at once, and a bucket
    CHECK(whole(grad(model.b.bias))(0) == 6);
    CHECK(contains(error_of([&] { replicate(branches(), mesh, dp{}, {.ignored = {"b.wait"}}); }),
                   "replicate: 'b.wait' of `ignored` matches nothing in"));
  });
}

TEST_CASE("lazy parameters are made where they lie; others are the first rank's") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    {
      CommTrace trace(world);
      const auto layer = replicate(nn::linear<double>(3, 2), mesh, dp{});
      CHECK(trace.count(CollectiveKind::broadcast) == 0);
      CHECK(layer.weight.shape()[0] == 2);
    }
    const auto mine = [&](double base) {
      Tensor<double, 2> t({2, 2});
      t.fill_(base + world.rank());
      return t;
    };
    const nn::Linear<Tensor<double, 2>, nn::None> local{mine(5), {}};
    CHECK(replicate(local, mesh, dp{}).weight.to_local()(1, 1) == 5);
    const nn::Linear differs{from_local(mine(7), mesh, Replicate{}), nn::None{}};
    const auto free = replicate(differs, mesh, dp{}, {.init_sync = false});
    CHECK(free.weight.to_local()(1, 1) == 7 + world.rank());
    const auto same = replicate(requires_grad(differs), mesh, dp{});
    CHECK(same.weight.value().to_local()(1, 1) == 7);
    CHECK(same.bucket_count() == 1);

    const auto buffered = replicate(branches(), mesh, dp{});
    CHECK(buffered.seen.value.to_local()(1) == 2);
    buffered.seen.value.to_local()(1) = 9 + world.rank();
    buffered.broadcast_buffers();
    CHECK(buffered.seen.value.to_local()(1) == 9);

    const auto seen_by = [&](const auto& model, bool sums) {
      model.seen.value.to_local()(1) = 5 + world.rank();
      model.set_requires_gradient_sync(sums);
      CommTrace trace(world);
      backward(model(randn<double>({6, 3}, mesh, Shard<0>{}), false));
      return std::pair{model.seen.value.to_local()(1), trace.count(CollectiveKind::broadcast)};
    };
    const auto calls_first =
        requires_grad(replicate(branches(), mesh, dp{}, {.broadcast_buffers = true}));
    CHECK(seen_by(calls_first, false) == std::pair{5. + world.rank(), index_t(0)});
    CHECK(seen_by(calls_first, true) == std::pair{5., index_t(2)});  // and the bucket's order
    CHECK(seen_by(calls_first, true) == std::pair{5., index_t(1)});
    const auto usual = requires_grad(replicate(branches(), mesh, dp{}));
    CHECK(seen_by(usual, true).first == 5 + world.rank());
  });
}

TEST_CASE("a failure in backward leaves nothing in the buckets; moved modules go on") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = requires_grad(ones<double>({4, 3}, mesh, Shard<0>{}));
    auto first = requires_grad(replicate(branches(), mesh, dp{}, {.bucket_bytes = {8, 8}}));
    const auto model = std::move(first);
    bool fails = true;
    on_gradient(x, [&](const auto&) {
      if (fails) throw std::runtime_error("planted");
    });
    CHECK(error_of([&] { backward(model(x, false)); }) == "planted");
    CHECK(!has_grad(model.b.bias));
    fails = false;
    int told = 0;
    on_gradient(model.b.bias, [&](const auto& g) {
      CHECK(whole(g)(0) == 4);
      CHECK(contains(error_of([&] { model.set_requires_gradient_sync(false); }),
                     "a backward is in progress"));
      ++told;
    });
    backward(model(x, false));
    CHECK(told == 1);
    CHECK(whole(grad(model.b.bias))(0) == 4);
    CHECK(contains(
        error_of([&] {
          parallel::GradientSync<Host>(mesh.state(), 1, {}, false).add("b.bias", model.b.bias);
        }),
        "replicate: another wrapper already reduces the gradient of b.bias"));
  });
}

TEST_CASE("gradients that fully_shard shards over another axis are sent in buckets of shards") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const auto alone = network_alone();
    const Batch batch;
    backward(loss_of(alone, batch.x, batch.target));
    const auto x = distribute_tensor(batch.x, mesh, Shard<0>{}, Shard<0>{});
    const auto target = distribute_tensor(batch.target, mesh, Shard<0>{}, Shard<0>{});
    manual_seed(world, seed);
    const auto model = requires_grad(replicate(fully_shard(network(), mesh, tp{}), mesh, dp{}));
    const auto loss = loss_of(model, x, target);
    CommTrace trace(world);
    backward(loss);
    CHECK(model.bucket_count() == 1);
    CHECK(sums_over_dp(trace) == 1);
    CHECK(distance(alone, model, gradients) < 1e-12);
  });
}
