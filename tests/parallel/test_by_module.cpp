// Communication by module path, forward and backward, under every transformation.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/nn/with_paths.hpp>
#include <cleave/parallel.hpp>

#include "errors.hpp"
#include "ranks.hpp"
#include "sharded_models.hpp"
#include "small_gpt.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

/// "forward query: 1 all_gather tp; backward (root): 1 all_reduce dp", in the order of the modules'
/// first collectives.
std::string by_path(const CommEvents& events) {
  std::string text;
  for (const bool is_backward : {false, true}) {
    const CommEvents pass = is_backward ? events.backward() : events.forward();
    for (const std::string& path : pass.paths()) {
      text += text.empty() ? "" : "; ";
      text += std::string(is_backward ? "backward " : "forward ") +
              (path.empty() ? "(root)" : path) + ":";
      const CommEvents here = pass.at(path);
      std::vector<std::string> seen;
      for (const CommEvent& event : here.events()) {
        const std::string name = std::string(" ") + name_of(event.kind) + " " + event.group;
        bool is_new = event.kind != CollectiveKind::barrier;
        for (const std::string& other : seen) is_new = is_new && other != name;
        if (!is_new) continue;
        seen.push_back(name);
        text += " " + std::to_string(here.count(event.kind, event.group)) + name;
      }
    }
  }
  return text;
}

/// Checks that the sums over all modules and both passes are the trace's totals.
void check_sums(const CommEvents& trace) {
  index_t calls = 0, bytes = 0, messages = 0;
  for (const std::string& path : trace.paths()) {
    for (const CommEvents& part : {trace.forward().at(path), trace.backward().at(path)}) {
      calls += part.count();
      bytes += part.received_bytes();
      messages += part.received_messages();
    }
  }
  CHECK(calls == trace.count());
  CHECK(bytes == trace.received_bytes());
  CHECK(messages == trace.received_messages());
  CHECK(trace.inside("").count() == trace.count());
}

/// The communication of a forward and a backward pass.
std::string traced(World& world, const auto& m, const auto& x) {
  CommTrace trace(world);
  const auto y = m(x);
  backward(y, full_like(y, 1));
  check_sums(trace);
  return by_path(trace);
}

}  // namespace

TEST_CASE("layers of a plan: collectives of styles are listed at their layer, both ways") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto x = requires_grad(randn<double>({4, 6}, mesh, Replicate{}));
    const auto m =
        parallelize_module(nn::mlp<double>(6, 8, 6), mesh, on("up"_path, ColwiseParallel{}),
                           on("down"_path, RowwiseParallel{}));
    CHECK(traced(world, with_paths(requires_grad(m)), x) ==
          "forward down: 1 all_reduce tp; backward up: 1 all_reduce tp");
    CHECK(traced(world, requires_grad(with_paths(m)), x) ==
          "forward down: 1 all_reduce tp; backward up: 1 all_reduce tp");
    CHECK(traced(world, requires_grad(m), x) ==
          "forward (root): 1 all_reduce tp; backward (root): 1 all_reduce tp");
  });
}

TEST_CASE("a block over tp: a sum for three layers is listed at the module that has them") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto m = gpt::tensor_parallel(gpt::small_gpt(1), mesh, tp{}).blocks[0];
    const auto x =
        requires_grad(randn<double>({gpt::batch, gpt::context, gpt::width}, mesh, Replicate{}));
    CHECK(traced(world, with_paths(requires_grad(m)), x) ==
          "forward attention.out: 1 all_reduce tp; forward mlp.down: 1 all_reduce tp; "
          "backward mlp.up: 1 all_reduce tp; backward attention: 1 all_reduce tp");
  });
}

TEST_CASE(
    "blocks whose sequences are sharded: each gather and scatter at its layer, in each block") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto m = with_paths(requires_grad(gpt::sequence_parallel(gpt::small_gpt(2), mesh, tp{})));
    const auto ids = distribute_tensor(gpt::some_tokens(0), mesh, Replicate{});
    CommTrace trace(world);
    backward(gpt::loss_of(m, ids, distribute_tensor(gpt::some_tokens(1), mesh, Replicate{})));
    check_sums(trace);
    using enum CollectiveKind;
    for (const std::string block : {"blocks.0", "blocks.1"}) {
      const CommEvents forward = trace.forward().inside(block);
      CHECK(forward.count() == 4);
      CHECK(forward.at(block + ".attention").count(all_gather) == 1);
      CHECK(forward.at(block + ".attention.out").count(reduce_scatter) == 1);
      CHECK(forward.at(block + ".mlp.up").count(all_gather) == 1);
      CHECK(forward.at(block + ".mlp.down").count(reduce_scatter) == 1);
      const CommEvents back = trace.backward().inside(block);
      CHECK(back.count() == 8);
      CHECK(back.at(block + ".attention").count(reduce_scatter) == 1);
      CHECK(back.at(block + ".attention.out").count(all_gather) == 1);
      CHECK(back.at(block + ".mlp.up").count(reduce_scatter) == 1);
      CHECK(back.at(block + ".mlp.down").count(all_gather) == 1);
      CHECK(back.at(block + ".attention_norm").count(all_reduce) == 2);
      CHECK(back.at(block + ".mlp_norm").count(all_reduce) == 2);
    }
    CHECK(trace.inside("blocks").count() == 24);
    CHECK(trace.forward().at("tokens").count(reduce_scatter) == 1);
    CHECK(trace.backward().at("norm").count(all_reduce) == 2);
  });
}

TEST_CASE("sharded parameters: gathers and sums are listed at their group, early ones too") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = distribute_tensor(Examples{}.x, mesh, Shard<0>{});
    const auto m = with_paths(requires_grad(fully_shard(deep_net(), mesh, dp{}, "layers.*"_path)));
    CommTrace trace(world);
    const auto y = m(x);
    backward(y, full_like(y, 1));
    check_sums(trace);
    using enum CollectiveKind;
    for (const std::string path : {"", "layers.0", "layers.1", "layers.2"}) {
      CHECK(trace.forward().at(path).count() == 1);
      CHECK(trace.forward().at(path).count(all_gather, "dp") == 1);
      CHECK(trace.backward().at(path).count() == 2);
      CHECK(trace.backward().at(path).count(all_gather, "dp") == 1);
      CHECK(trace.backward().at(path).count(reduce_scatter, "dp") == 1);
    }
    CHECK(trace.count() == 12);
  });
}

TEST_CASE("buckets are listed at the replicated module; the wrapper keeps its options") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = distribute_tensor(Examples{}.x, mesh, Shard<0>{});
    const auto m = with_paths(requires_grad(
        replicate(deep_net(), mesh, dp{}, {.bucket_bytes = {.first = 100, .others = 400}})));
    CHECK(m.bucket_count() > 2);
    for (const int step : {0, 1}) {
      CommTrace trace(world);
      const auto y = m(x);
      backward(y, full_like(y, 1));
      check_sums(trace);
      CHECK(trace.count(CollectiveKind::all_reduce, "dp") == m.bucket_count());
      CHECK(trace.backward().at("").count() == m.bucket_count() + (step == 0 ? 1 : 0));
      CHECK(trace.backward().at("").count() == trace.count());
    }
    const CommTrace silent(world);
    m.set_requires_gradient_sync(false);
    const auto y = m(x);
    backward(y, full_like(y, 1));
    CHECK(silent.count() == 0);
  });
}

TEST_CASE("collectives repeated by a checkpoint are listed in backward, at the same modules") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto m = with_paths(requires_grad(
        parallelize_module(nn::mlp<double>(6, 8, 6), mesh, on("up"_path, ColwiseParallel{}),
                           on("down"_path, RowwiseParallel{}))));
    const auto x = requires_grad(randn<double>({4, 6}, mesh, Replicate{}));
    CommTrace trace(world);
    const auto y = checkpoint([&](const auto& in) { return m(in) * m(in); }, x);
    backward(y, full_like(y, 1));
    check_sums(trace);
    CHECK(by_path(trace) ==
          "forward down: 2 all_reduce tp; backward down: 2 all_reduce tp; "
          "backward up: 1 all_reduce tp");
  });
}

TEST_CASE("a module with paths computes the same, and keeps names, numbers and gradients") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto plain = requires_grad(gpt::tensor_parallel(gpt::small_gpt(1), mesh, tp{}));
    const auto m = with_paths(plain);
    CHECK(nn::describe(m) == nn::describe(plain));
    const auto ids = distribute_tensor(gpt::some_tokens(0), mesh, Replicate{});
    const auto next = distribute_tensor(gpt::some_tokens(1), mesh, Replicate{});
    const auto loss = gpt::loss_of(m, ids, next);
    CHECK(whole_elements(loss.value()) == whole_elements(gpt::loss_of(plain, ids, next).value()));
    backward(loss);
    CHECK(has_grad(plain.blocks[0].mlp.up.weight));
  });
}
