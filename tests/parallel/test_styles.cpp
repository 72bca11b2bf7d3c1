// Parallel styles, one by one: communication, placements of inputs and results, several axes.
#include <cmath>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/parallel.hpp>

#include "comm_calls.hpp"
#include "errors.hpp"
#include "ranks.hpp"
#include "small_gpt.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

template <class X>
using placements_in = typename detail::innermost_t<X>::placements_type;

/// A linear layer from 6 to 7 features on 5 tokens, computed on one rank.
Tensor<double, 2> linear_by_hand(const Tensor<double, 2>& x, const std::vector<double>& weight,
                                 const std::vector<double>& bias) {
  const index_t outputs = index_t(bias.size());
  Tensor<double, 2> y({x.extent(0), outputs});
  for (index_t i = 0; i < x.extent(0); ++i)
    for (index_t j = 0; j < outputs; ++j) {
      y(i, j) = bias[std::size_t(j)];
      for (index_t k = 0; k < x.extent(1); ++k)
        y(i, j) += x(i, k) * weight[std::size_t(j * x.extent(1) + k)];
    }
  return y;
}

Tensor<double, 2> some_rows() {
  Tensor<double, 2> x({5, 6});
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = std::sin(double(3 * i + 1));
  return x;
}

void check_linear(const auto& m, const auto& y) {
  const auto expected =
      linear_by_hand(some_rows(), whole_elements(m.weight), whole_elements(m.bias));
  CHECK(largest_difference(whole_elements(y), whole_elements(expected)) < 1e-14);
}

/// Returns the sum and the difference of its inputs.
struct Both {
  static constexpr nn::names<0> members{};
  auto operator()(const auto& a, const auto& b) const { return std::tuple(a + b, a - b); }
};

/// A module with its own parameter applied after a part that has one.
template <class Part = nn::Linear<>, class Scale = nn::Lazy<float, 1>>
struct Scaled {
  Part part;
  Scale scale;
  static constexpr nn::names members{"part", "scale"};
  using colwise = nn::Cut<Replicate, Replicate, Shard<0>>;

  auto operator()(const auto& x) const { return part(x) * scale; }
};
template <class Part, class Scale>
Scaled(Part, Scale) -> Scaled<Part, Scale>;

}  // namespace

TEST_CASE("linear layers: communication follows from the placements of input and result") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto rows = distribute_tensor(some_rows(), mesh, Shard<0>{});
    const auto columns = distribute_tensor(some_rows(), mesh, Shard<1>{});
    const auto all = distribute_tensor(some_rows(), mesh, Replicate{});
    const auto layer = nn::linear<double>(6, 7);
    const auto check = [&](const auto& style, const auto& x, const char* forward,
                           const char* back) {
      const auto m = parallelize_module(layer, mesh, style);
      check_linear(m, m(x));
      check_calls(world, m, requires_grad(x), forward, back);
    };
    check(ColwiseParallel{}, all, "", "1 all_reduce");
    check(ColwiseParallel{}, rows, "1 all_gather", "1 reduce_scatter");
    check(RowwiseParallel{}, columns, "1 all_reduce", "");
    check(RowwiseParallel{}.output_layouts(Shard<0>{}), columns, "1 reduce_scatter",
          "1 all_gather");
    check(ColwiseParallel{}.output_layouts(Replicate{}), all, "1 all_gather", "1 all_reduce");
  });
}

TEST_CASE("embeddings: columns send nothing, rows one all-reduce forward") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto ids = distribute_tensor(gpt::some_tokens(0), mesh, Replicate{});
    const auto check = [&](const auto& style, const char* forward, const char* back) {
      const auto m = parallelize_module(nn::embedding<double>(gpt::vocabulary, 4), mesh, style);
      const auto table = whole_elements(m.weight), y = whole_elements(m(ids));
      for (std::size_t i = 0; i < y.size(); ++i)
        CHECK(y[i] == table[std::size_t(gpt::some_tokens(0).data()[i / 4]) * 4 + i % 4]);
      check_calls(world, m, ids, forward, back);
    };
    check(ColwiseParallel{}, "", "");
    check(RowwiseParallel{}, "1 all_reduce", "");
    check(RowwiseParallel{}.output_layouts(Shard<1>{}), "1 reduce_scatter", "1 all_gather");
  });
}

TEST_CASE("sequences: norms and dropout send nothing") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto x = randn<double>({2, 5, 6}, mesh, Shard<1>{});
    const auto none = parallelize_module(nn::Dropout{0.5}, mesh, SequenceParallel{});
    const auto norm = parallelize_module(nn::rms_norm<double>(6), mesh, SequenceParallel{});
    CommTrace trace(world);
    const auto y = norm(none(x));
    static_assert(std::is_same_v<decltype(y.placements()), Placements<Shard<1>>>);
    index_t moved = 0;  // CLEAVE_CHECK=collective adds comparisons of random states
    for (const CommEvent& event : trace.events()) moved += event.dtype == DType::float64;
    CHECK(moved == 0);
    static_assert(std::is_same_v<decltype(norm(x.redistribute(Replicate{})).placements()),
                                 Placements<Shard<1>>>);
  });
}

TEST_CASE("Tensors as inputs and results, their layouts stated, gradients through both") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto whole = some_rows();
    const auto m = parallelize_module(
        nn::linear<double>(6, 7), mesh,
        ColwiseParallel{}.input_layouts(Replicate{}).output_layouts(Replicate{}).local_output());
    const auto y = m(whole);
    static_assert(is_tensor<std::remove_cvref_t<decltype(y)>>);
    check_linear(m, y);
    // two layers of a network on local tensors: the same gradients as on one rank
    const auto two = requires_grad(parallelize_module(
        nn::mlp<double>(6, 8, 4), mesh, on("up"_path, ColwiseParallel{}.input_layouts(Replicate{})),
        on("down"_path, RowwiseParallel{}.local_output())));
    const auto x = requires_grad(whole);
    backward(sum(square(two(x))));
    RandomState state{0, 0};
    const auto one = requires_grad(nn::make(nn::mlp<double>(6, 8, 4), state));
    std::vector<std::vector<double>> values;
    nn::parameters(two, [&](const auto& p) { values.push_back(whole_elements(p.value())); });
    std::size_t k = 0;
    nn::parameters(one, [&](const auto& p) {
      std::copy(values[k].begin(), values[k].end(), p.value().data());
      ++k;
    });
    const auto z = requires_grad(whole);
    backward(sum(square(one(z))));
    CHECK(largest_difference(whole_elements(grad(x)), whole_elements(grad(z))) < 1e-13);
    CHECK(largest_difference(whole_elements(grad(two.up.weight)),
                             whole_elements(grad(one.up.weight))) < 1e-13);
    CHECK(largest_difference(whole_elements(grad(two.down.bias)),
                             whole_elements(grad(one.down.bias))) < 1e-13);
  });
}

TEST_CASE("several inputs and results are prepared each by itself; others stay") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {1, world.size()});
    const auto whole = some_rows();
    const auto a = distribute_tensor(whole, mesh, Replicate{}, Shard<0>{});
    const auto in =
        parallelize_module(Both{}, mesh, tp{}, PrepareModuleInput(Shard<1>{}, Shard<1>{}));
    const auto [sum_in, difference_in] = in(a, a.redistribute(Replicate{}, Replicate{}));
    static_assert(std::is_same_v<placements_in<decltype(sum_in)>, Placements<Replicate, Shard<1>>>);
    CHECK(largest_difference(whole_elements(sum_in), whole_elements(add(whole, whole))) == 0);

    const auto out =
        parallelize_module(Both{}, mesh, tp{}, PrepareModuleOutput(Replicate{}, nn::None{}));
    const auto [sum_out, difference_out] = out(a, a);
    static_assert(
        std::is_same_v<placements_in<decltype(sum_out)>, Placements<Replicate, Replicate>>);
    static_assert(
        std::is_same_v<placements_in<decltype(difference_out)>, Placements<Replicate, Shard<0>>>);

    // the module computes with this rank's shards, given as a Tensor and as a DTensor
    const auto local =
        parallelize_module(Both{}, mesh, tp{},
                           PrepareModuleInputOutput{}
                               .desired_input_layouts(Shard<0>{}, Shard<0>{})
                               .input_layouts(Placements<Replicate, Replicate>{}, nn::None{})
                               .local_inputs()
                               .desired_output_layouts(Replicate{}, nn::None{})
                               .output_layouts(Placements<Replicate, Shard<0>>{}, nn::None{}));
    const auto [sum_of, difference_of] = local(whole, a);
    static_assert(is_tensor<std::remove_cvref_t<decltype(difference_of)>>);
    static_assert(
        std::is_same_v<placements_in<decltype(sum_of)>, Placements<Replicate, Replicate>>);
    CHECK(largest_difference(whole_elements(sum_of), whole_elements(add(whole, whole))) == 0);
    CHECK(difference_of.extent(0) == a.to_local().extent(0));
  });
}

TEST_CASE("one layer on two axes: its rows over one, its columns over the other") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<ep, tp>(world, {2, world.size() / 2});
    const auto columns =
        parallelize_module(nn::linear<double>(6, 7), mesh, tp{}, ColwiseParallel{});
    const auto m = parallelize_module(columns, mesh, ep{}, RowwiseParallel{});
    static_assert(
        std::is_same_v<placements_in<decltype(m.weight)>, Placements<Shard<1>, Shard<0>>>);
    static_assert(std::is_same_v<placements_in<decltype(m.bias)>, Placements<Replicate, Shard<0>>>);
    const auto x = distribute_tensor(some_rows(), mesh, Shard<1>{}, Replicate{});
    CommTrace trace(world);
    const auto y = m(x);
    CHECK(trace.count(CollectiveKind::all_reduce, "ep") == 1);
    CHECK(trace.count() == 1);
    static_assert(std::is_same_v<placements_in<decltype(y)>, Placements<Replicate, Shard<1>>>);
    check_linear(m, y);
  });
}

TEST_CASE("a style of a user's, and styles one after the other") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto rows = distribute_tensor(some_rows(), mesh, Shard<0>{});
    const auto mine = [](const auto& m, const auto& along) {
      return prepared(along.cut(m, nn::Cut<Replicate, Shard<1>, Replicate>{}), along, Shard<1>{},
                      nn::None{});
    };
    const auto m = parallelize_module(nn::linear<double>(6, 7), mesh, mine);
    static_assert(std::is_same_v<decltype(m.weight.placements()), Placements<Shard<1>>>);
    const auto y = m(rows);
    static_assert(std::remove_cvref_t<decltype(y)>::layout[0].is_partial());
    check_linear(m, y);
    const auto n = parallelize_module(nn::linear<double>(6, 7), mesh,
                                      styles(mine, PrepareModuleOutput(Shard<0>{})));
    static_assert(std::is_same_v<decltype(n(rows).placements()), Placements<Shard<0>>>);
    check_linear(n, n(rows));
  });
}

TEST_CASE("parameters start as on one rank, in whatever order styles make them") {
  const auto lazy = [] {
    return Scaled{nn::linear<double>(6, 7), nn::Lazy<double, 1>{{7}, nn::normal(0, 1)}};
  };
  RandomState state{9, 0};
  const auto one = nn::make(lazy(), state);
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    manual_seed(world, 9);
    const auto m = parallelize_module(lazy(), mesh, on(""_path, ColwiseParallel{}),
                                      on("part"_path, ColwiseParallel{}));
    CHECK(random_state(world) == state);
    CHECK(whole_elements(m.part.weight) == whole_elements(one.part.weight));
    CHECK(whole_elements(m.part.bias) == whole_elements(one.part.bias));
    CHECK(whole_elements(m.scale) == whole_elements(one.scale));
    static_assert(std::is_same_v<decltype(m.scale.placements()), Placements<Shard<0>>>);
    static_assert(std::is_same_v<decltype(m.part.weight.placements()), Placements<Shard<0>>>);
  });
}

TEST_CASE("dropout: equal where replicated, of a tracker's region where a style says so") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto all = ones<double>({6, 40}, mesh, Replicate{});
    const auto rows = ones<double>({6, 40}, mesh, Shard<0>{});
    const auto expected = [](const RandomState& at) {
      RandomState state = at;
      Tensor<double, 2> one({6, 40});
      one.fill_(1);
      return whole_elements(dropout(one, 0.5, state));
    };
    manual_seed(world, 5);
    const auto plain = parallelize_module(nn::Dropout{0.5}, mesh, SequenceParallel<0>{});
    CHECK(whole_elements(plain(all)) == expected({5, 0}));  // all ranks use one mask
    CHECK(whole_elements(plain(rows)) == expected({5, 1}));

    TensorParallelRNGTracker tracker(mesh, tp{});
    const auto apart = parallelize_module(nn::Dropout{0.5}, mesh,
                                          styles(SequenceParallel<0>{}, random_region(tracker)));
    const auto y = apart(rows);
    const auto mine = expected({1234 + 2718 + std::uint64_t(mesh.coordinate(tp{})), 0});
    const Box box = y.local_box();
    for (index_t i = 0; i < box.extent(0); ++i)
      for (index_t j = 0; j < 40; ++j)
        CHECK(y.to_local()(i, j) == mine[std::size_t((box.begin[0] + i) * 40 + j)]);
    CHECK(random_state(world) == RandomState{5, 2});  // the world's own state is unchanged

    const auto everywhere = parallelize_module(nn::Dropout{0.5}, mesh, random_region(tracker));
    CHECK(contains(error_of([&] { everywhere(all); }), "may draw different numbers"));
    CHECK(random_state(world) == RandomState{5, 2});
  });
}
