// The cost of a training step for any rank of a mesh larger than the machine.
#include <chrono>
#include <cstdio>
#include <string>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/nn/with_paths.hpp>
#include <cleave/parallel.hpp>

#include "small_gpt.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

constexpr index_t width = 8192, heads = 64, context = 4096, batch = 2048;
constexpr index_t dp_ranks = 2048, tp_ranks = 8;

/// The resident memory of this process, in bytes.
std::size_t resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  long all = 0, resident = 0;
  const int read = std::fscanf(file, "%ld %ld", &all, &resident);
  std::fclose(file);
  return read == 2 ? std::size_t(resident) * 4096 : 0;
}

/// Forward, backward and optimizer step of one block: heads and hidden layer are sharded over tp,
/// parameters over dp, except biases that tp already shards, whose gradients form one bucket.
void train_block(World& world) {
  const auto mesh = init_device_mesh<dp, tp>(world, {dp_ranks, tp_ranks});
  const auto block = parallelize_module(
      nn::transformer_block(width, heads), mesh, tp{},
      on("attention.query"_path, ColwiseParallel{}), on("attention.key"_path, ColwiseParallel{}),
      on("attention.value"_path, ColwiseParallel{}), on("attention.out"_path, RowwiseParallel{}),
      on("mlp.up"_path, ColwiseParallel{}), on("mlp.down"_path, RowwiseParallel{}));
  const auto sharded = fully_shard(block, mesh, dp{});
  const auto m = with_paths(requires_grad(replicate(sharded, mesh, dp{}, {.init_sync = false})));
  auto optimizer = nn::adamw(m, {});
  const auto x =
      requires_grad(randn<float>({batch, context, width}, mesh, Shard<0>{}, Replicate{}));
  const auto y = m(x);
  backward(y, full_like(y, 1.0f));
  optimizer.step(m);
}

}  // namespace

TEST_CASE("a step of a block of 8192 numbers, on any of 16,384 ranks, in seconds") {
  using Clock = std::chrono::steady_clock;
  constexpr index_t element = 4;
  // sharded by dp: weights, of which tp shards a part; norms; biases added after a sum over tp
  constexpr index_t whole = (12 * width * width / tp_ranks + 6 * width) * element;
  constexpr index_t biases = (3 * width + 4 * width) / tp_ranks * element;
  constexpr index_t values = batch / dp_ranks * context * width * element;  // of x on a rank
  for (const int rank : {0, 7777, 16383}) {
    const std::size_t before = resident_bytes();
    const Clock::time_point start = Clock::now();
    const Budget cost = budget(rank, dp_ranks * tp_ranks, train_block);
    const std::chrono::duration<double> took = Clock::now() - start;

    const CommEvents& all = cost.communication;
    using enum CollectiveKind;
    CHECK(all.count(all_gather, "dp") == 2);
    CHECK(all.count(reduce_scatter, "dp") == 1);
    CHECK(all.forward().at("attention.out").count(all_reduce, "tp") == 1);
    CHECK(all.forward().at("mlp.down").count(all_reduce, "tp") == 1);
    CHECK(all.backward().at("attention").count(all_reduce, "tp") == 1);
    CHECK(all.backward().at("mlp.up").count(all_reduce, "tp") == 1);
    CHECK(all.backward().at("").count(all_reduce, "dp") == 1);
    CHECK(all.backward().at("").count(broadcast, "dp") == 1);  // the order of the bucket, once
    CHECK(cost.collectives() == 9);
    const bool is_first = rank / tp_ranks == 0;
    const index_t gathered = 3 * (whole / dp_ranks * (dp_ranks - 1));
    const index_t reduced = 4 * (2 * values / tp_ranks * (tp_ranks - 1));
    const index_t bucket = 2 * biases * (dp_ranks - 1) / dp_ranks / element * element;
    CHECK(cost.received_bytes() == gathered + reduced + bucket + (is_first ? 0 : 4 * element));
    CHECK(cost.messages() == 5 * (dp_ranks - 1) + 4 * 2 * (tp_ranks - 1) + (is_first ? 0 : 1));

    CHECK(cost.peak_bytes() > std::size_t(2 * whole + values));  // parameters and their gradients
    CHECK(cost.peak_bytes() < std::size_t(80) << 30);
    CHECK(took.count() < 20);
    CHECK(resident_bytes() < before + (std::size_t(256) << 20));
  }
}

TEST_CASE("a program that fails, fails its budget") {
  CHECK_THROWS_WITH_AS(budget(4, 4, [](World&) {}), "dry_communicator: there is no rank 4 of 4",
                       Error);
  CHECK_THROWS_AS(
      budget(0, 4, [](World& world) { static_cast<void>(init_device_mesh<dp>(world, {3})); }),
      Error);
}

TEST_CASE("a dry run leaves the tensors of others alone") {
  const Tensor<float, 1> x({5000});
  x.fill_(3);
  const Budget cost = budget(1, 2, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {2});
    const auto big = zeros<float>({index_t(1) << 36}, mesh, Shard<0>{});
    const auto sum = big + big;
    CHECK(sum.to_local().size() == index_t(1) << 35);
  });
  CHECK(cost.peak_bytes() == std::size_t(2) << 37);
  CHECK(cost.collectives() == 0);
  CHECK((x + x)(4999) == 6.0f);
}
