// Layers for sequences: PyTorch's values and gradients, on one device and under all placements.
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/nn.hpp>

#include "errors.hpp"
#include "member_names.hpp"
#include "ranks.hpp"
#include "torch_checks.hpp"
#include "torch_sequences.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

template <class T, int Rank>
Tensor<T, Rank> filled(const std::array<index_t, std::size_t(Rank)>& extents,
                       const std::vector<double>& values) {
  Tensor<T, Rank> x(extents);
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = T(values.at(std::size_t(i)));
  return x;
}

Tensor<double, 3> input_of_sequences() {
  return filled<double, 3>({3, 5, 4}, torch_sequences::sequences);
}

template <class M>
auto with_parameters(const M& lazy, const Expected& expected) {
  RandomState state{0, 0};
  const auto m = nn::make(lazy, state);
  set_parameters(m, expected.parameters);
  return m;
}

template <class M>
void check_sequences(const M& m, const Expected& expected) {
  const auto x = input_of_sequences();
  check_against(expected, m, x);
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto placed = nn::place(m, mesh);
    check_against(expected, placed, distribute_tensor(x, mesh, Shard<0>{}));
    check_against(expected, placed, distribute_tensor(x, mesh, Shard<1>{}));
    check_against(expected, placed, distribute_tensor(x, mesh, Shard<2>{}));
  });
}

/// Shards heads over tp: the first weights by rows, the last by columns.
template <class M, class Mesh>
auto by_heads(const M& m, const Mesh& mesh) {
  const auto rows = [&](const auto& part) {
    return nn::place(part, mesh, Replicate{}, Shard<0>{});
  };
  return nn::MultiheadAttention{rows(m.query),
                                rows(m.key),
                                rows(m.value),
                                nn::Linear{nn::place(m.out.weight, mesh, Replicate{}, Shard<1>{}),
                                           nn::place(m.out.bias, mesh)},
                                m.mask,
                                m.heads,
                                m.groups,
                                m.places};
}

const Expected of_attention{torch_sequences::attention_parameters,
                            torch_sequences::attention_result, torch_sequences::attention_gradients,
                            torch_sequences::attention_input_gradient};
const Expected of_grouped{torch_sequences::grouped_attention_parameters,
                          torch_sequences::grouped_attention_result,
                          torch_sequences::grouped_attention_gradients,
                          torch_sequences::grouped_attention_input_gradient};
const Expected of_rotary{
    torch_sequences::rotary_attention_parameters, torch_sequences::rotary_attention_result,
    torch_sequences::rotary_attention_gradients, torch_sequences::rotary_attention_input_gradient};
const Expected of_block{torch_sequences::block_parameters, torch_sequences::block_result,
                        torch_sequences::block_gradients, torch_sequences::block_input_gradient};

}  // namespace

TEST_CASE("the names of sequence layers are those of their members") {
#if defined(__GNUC__) && !defined(__clang__)
  CHECK(names_are_those_of_members<nn::Embedding<>>());
  CHECK(names_are_those_of_members<nn::Dropout>());
  CHECK(names_are_those_of_members<nn::MultiheadAttention<>>());
  CHECK(names_are_those_of_members<nn::TransformerBlock<>>());
#else
  skip("this compiler does not name members by their addresses");
#endif
}

TEST_CASE("embedding") {
  const auto lazy = nn::embedding<double>(7, 2);
  CHECK(nn::count(lazy) == 14);
  RandomState state{0, 0};
  const auto table = nn::make(lazy, state);
  set_parameters(table, torch_sequences::embedding_parameters);
  const auto ids = filled<index_t, 2>({3, 4}, torch_sequences::ids);
  const auto check = [](const auto& module, const auto& indices) {
    const auto m = requires_grad(module);
    const auto y = m(indices);
    CHECK(distance(whole(y.value()), torch_sequences::embedding_result.data()) == 0);
    backward(sum(y * y));
    CHECK(distance(whole(grad(m.weight)), torch_sequences::embedding_gradients.data()) < 1e-13);
  };
  check(table, ids);
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto rows = distribute_tensor(ids, mesh, Shard<0>{});
    const auto all = distribute_tensor(ids, mesh, Replicate{});
    check(nn::place(table, mesh), rows);
    check(nn::place(table, mesh, Shard<0>{}), rows);
    check(nn::place(table, mesh, Shard<0>{}), all);
    check(nn::place(table, mesh, Shard<1>{}), all);
  });
}

TEST_CASE("causal attention") {
  const auto m = with_parameters(nn::multihead_attention<double>(4, 2), of_attention);
  check_sequences(m, of_attention);
  on_ranks({2, 4}, [&](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / 2, 2});
    const auto x = distribute_tensor(input_of_sequences(), mesh, Shard<0>{}, Replicate{});
    check_against(of_attention, by_heads(m, mesh), x);
    const auto half = detach(by_heads(m, mesh));
    CommTrace trace(world);
    const auto y = half(x);
    CHECK(trace.events().empty());  // each rank has one head of all its sequences
    static_assert(decltype(y)::layout[1].is_partial());
  });
}

TEST_CASE("heads of queries that share keys and values") {
  const auto lazy = nn::multihead_attention<double>(4, 4, 2, nn::None{});
  check_sequences(with_parameters(lazy, of_grouped), of_grouped);
  on_ranks({4}, [&](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    check_against(of_grouped, by_heads(with_parameters(lazy, of_grouped), mesh),
                  distribute_tensor(input_of_sequences(), mesh, Shard<0>{}, Replicate{}));
  });
}

TEST_CASE("queries and keys that are rotated by their positions") {
  const auto lazy = nn::multihead_attention<double>(4, 1, causal, nn::Rotary{});
  check_sequences(with_parameters(lazy, of_rotary), of_rotary);
  const auto block = nn::transformer_block<double>(4, 2, nn::Relu{}, nn::Rotary{100});
  CHECK(block.attention.places.base == 100);
}

TEST_CASE("a block of a transformer, and the placement of its residual stream") {
  const auto m = with_parameters(nn::transformer_block<double>(4, 2), of_block);
  check_sequences(m, of_block);
  on_ranks({4}, [&](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const nn::Mlp feed{nn::place(m.mlp.up, mesh, Replicate{}, Shard<0>{}), nn::Relu{},
                       nn::Linear{nn::place(m.mlp.down.weight, mesh, Replicate{}, Shard<1>{}),
                                  nn::place(m.mlp.down.bias, mesh)}};
    const nn::TransformerBlock placed{nn::place(m.attention_norm, mesh),
                                      by_heads(m.attention, mesh), nn::place(m.mlp_norm, mesh),
                                      feed, nn::None{}};
    const auto x = distribute_tensor(input_of_sequences(), mesh, Shard<0>{}, Replicate{});
    check_against(of_block, placed, x);
    CommTrace trace(world);
    const auto y = placed(x);
    static_assert(std::is_same_v<decltype(y), decltype(x)>);
    CHECK(trace.count(CollectiveKind::all_reduce, "tp") == 2);  // of attention and of the MLP
    CHECK(trace.events().size() == 2);
  });
}

TEST_CASE("a number of heads that does not fit is an error that shows it") {
  CHECK(contains(error_of([] { nn::multihead_attention(6, 4); }),
                 "4 query heads and 4 key heads do not fit a width of 6"));
  CHECK(contains(error_of([] { nn::multihead_attention(8, 4, 3); }), "3 key heads"));
}

TEST_CASE("dropout drops while a model is trained, the same on any mesh") {
  const auto ones = filled<double, 2>({40, 5}, std::vector<double>(200, 1));
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = distribute_tensor(ones, mesh, Shard<0>{});
    auto m = nn::sequential(nn::Relu{}, nn::Dropout{0.25});
    manual_seed(world, 3);
    const auto y = whole(m(x));
    int dropped = 0;
    for (index_t i = 0; i < y.size(); ++i) {
      const double value = y.data()[i];
      CHECK((value == 0 || std::abs(value - 4.0 / 3) < 1e-15));
      dropped += value == 0;
    }
    CHECK(dropped > 25);
    CHECK(dropped < 75);
    manual_seed(world, 3);
    CHECK(distance(y, whole(m(distribute_tensor(ones, mesh, Replicate{}))).data()) == 0);
    CHECK(distance(y, whole(m(x)).data()) > 0);  // a new draw
    nn::eval(m);
    CHECK(distance(whole(m(x)), ones.data()) == 0);
    nn::train(m);
    CHECK(distance(whole(m(x)), ones.data()) > 0);
  });
}
