// Modules as values: their parts, names, types and text.
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/nn.hpp>

#include "errors.hpp"
#include "member_names.hpp"
#include "models.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

/// Two parts of one type, one of another, and an argument that is not a part.
template <class T, class A, class B, class C>
struct Three {
  A a;
  C c;
  B b;
  T scale;
  static constexpr nn::names members{"a", "c", "b", "scale"};
};

/// A third-party struct without names.
template <class A>
struct Theirs {
  A weight;
};
struct Opaque {
  int number;
};

/// Wraps a module and replaces its call.
template <class M>
struct Doubled : M {
  using wrapped = M;
  using plain = nn::plain_t<M>;
  explicit Doubled(M m) : M(m) {}
  template <class N>
  auto rewrap(const N& n) const {
    return Doubled<N>(n);
  }
  auto operator()(const auto& x) const { return M::operator()(x) * 2; }
};

template <class A, class B>
struct Misnamed {
  A up;
  B down;
  static constexpr nn::names members{"down", "up"};
};

std::vector<std::string> paths_of(const auto& m) {
  std::vector<std::string> paths;
  nn::named_parameters(m, [&](const std::string& path, const auto&) { paths.push_back(path); });
  return paths;
}

}  // namespace

template <class A>
struct cleave::nn::MembersOf<Theirs<A>> {
  static constexpr names value{"weight"};
};

TEST_SUITE_BEGIN("threads only");

TEST_CASE("the names of every module are those of its members, in order") {
#if defined(__GNUC__) && !defined(__clang__)
  CHECK(names_are_those_of_members<nn::Linear<>>());
  CHECK(names_are_those_of_members<nn::Mlp<>>());
  CHECK(names_are_those_of_members<nn::LayerNorm<>>());
  CHECK(names_are_those_of_members<nn::RmsNorm<>>());
  CHECK(names_are_those_of_members<Network<>>());
  CHECK_FALSE(names_are_those_of_members<Misnamed<int, float>>());
#else
  skip("this compiler does not name members by their addresses");
#endif
}

TEST_CASE("parameters come in order, with dotted names; counted with all their elements") {
  const auto m = network<double>(2);
  CHECK(paths_of(m) ==
        std::vector<std::string>{"layers.0.up.weight", "layers.0.up.bias", "layers.0.down.weight",
                                 "layers.0.down.bias", "layers.1.up.weight", "layers.1.up.bias",
                                 "layers.1.down.weight", "layers.1.down.bias", "norm.weight",
                                 "norm.bias", "head.weight", "head.bias"});
  CHECK(nn::count(m) == 2 * (6 * 4 + 6 + 4 * 6 + 4) + 4 + 4 + 3 * 4 + 3);
  CHECK(paths_of(nn::sequential(nn::linear(2, 3), nn::Relu{}, nn::linear(3, 1, nn::None{}))) ==
        std::vector<std::string>{"0.weight", "0.bias", "2.weight"});
  CHECK(paths_of(std::vector<Theirs<nn::Lazy<float, 1>>>(2)) ==
        std::vector<std::string>{"0.weight", "1.weight"});
  CHECK(paths_of(Opaque{1}).empty());
}

TEST_CASE("a part of another type makes a module of another type; other arguments stay") {
  using M = Three<float, nn::Linear<>, nn::Linear<>, nn::None>;
  const M m{nn::linear(2, 3), {}, nn::linear(3, 2), 0.5f};
  const auto swapped = nn::map_parts(m, [](const auto& part, auto i) {
    if constexpr (i == 2) return nn::linear(3, 2, nn::None{});
    else return part;
  });
  static_assert(std::is_same_v<decltype(swapped.b.bias), nn::None>);
  static_assert(std::is_same_v<
                std::remove_const_t<decltype(swapped)>,
                Three<float, nn::Linear<>, nn::Linear<nn::Lazy<float, 2>, nn::None>, nn::None>>);
  CHECK(swapped.scale == 0.5f);
  CHECK(swapped.a.weight.extents == m.a.weight.extents);
}

TEST_CASE("a module on one device: its parts made, others' kept; buffers and numbers too") {
  RandomState state{11, 0};
  const auto m = nn::make(network<double>(1), state);
  static_assert(is_tensor<std::remove_cvref_t<decltype(m.layers[0].up.weight)>>);
  CHECK(state.offset == 6);  // one draw for each non-constant parameter
  CHECK(m.norm.weight(3) == 1);
  CHECK(m.norm.bias(3) == 0);
  CHECK(m.seen.value(1) == 8);
  CHECK(m.repeats == 2);
  double largest = 0;
  for (index_t i = 0; i < 24; ++i) {
    largest = std::max(largest, std::abs(m.layers[0].up.weight.data()[i]));
    CHECK(std::abs(m.layers[0].up.weight.data()[i]) <= 0.5);  // 1 / sqrt(4)
  }
  CHECK(largest > 0.3);
  const auto theirs = nn::make(Theirs<nn::Lazy<float, 1>>{{{3}, nn::constant(2)}}, state);
  CHECK(theirs.weight(2) == 2);
}

TEST_CASE("normal parameters have the requested mean and deviation") {
  RandomState state{5, 0};
  const auto x = make(nn::Lazy<double, 1>{{20000}, nn::normal(3, 0.5)}, state);
  double sum = 0, squares = 0;
  for (index_t i = 0; i < x.size(); ++i) {
    sum += x(i);
    squares += (x(i) - 3) * (x(i) - 3);
  }
  CHECK(std::abs(sum / 20000 - 3) < 0.02);
  CHECK(std::abs(std::sqrt(squares / 20000) - 0.5) < 0.02);
}

TEST_CASE("a wrapper stays when the module inside is transformed") {
  RandomState state{1, 0};
  const Doubled<nn::Linear<>> lazy(nn::linear(2, 2));
  const auto m = nn::make(lazy, state);
  static_assert(
      std::is_same_v<decltype(nn::unwrapped(m)), nn::Linear<Tensor<float, 2>, Tensor<float, 1>>>);
  const Tensor<float, 2> x({1, 2}, {1, 2});
  CHECK(m(x)(0, 1) == 2 * nn::unwrapped(m)(x)(0, 1));
  CHECK(paths_of(m) == std::vector<std::string>{"weight", "bias"});
}

TEST_CASE("training is set in all modules below") {
  auto m = std::vector{network<float>(1), network<float>(1)};
  nn::eval(m);
  CHECK_FALSE(m[1].training);
  nn::train(m);
  CHECK(m[0].training);
}

TEST_CASE("the tree of a type is a constant; paths choose modules of it") {
  using M = Network<>;
  constexpr const auto& tree = nn::tree_of<M>;
  static_assert(nn::leads_to("layers.*.up", tree, 3));
  CHECK(tree[3].name == std::string_view("up"));
  static_assert(!nn::leads_to("up", tree, 3) && !nn::leads_to("x.layers.*.up", tree, 3));
  static_assert(nn::leads_to("", tree, 0));
  constexpr auto choice =
      nn::choose(tree, {decltype("layers.*.up"_path)::text, decltype("head"_path)::text});
  static_assert(choice.unmatched == -1 && choice.twice == -1 && choice.entry[3] == 0);
  static_assert(nn::is_touched(choice, tree, 1) && !nn::is_touched(choice, tree, 4));
  static_assert(nn::choose(tree, {"head", "layers.*.nothing"}).unmatched == 1);
  static_assert(nn::choose(tree, {"head.weight"}).unmatched == 0);  // a parameter is not a module
  static_assert(nn::choose(tree, {"head", "hea?"}).twice == 1);
  using S = nn::Sequential<nn::Linear<>, nn::Relu, nn::Mlp<>>;
  constexpr auto of_row = nn::choose(nn::tree_of<S>, {"2.up", "0"});
  static_assert(of_row.unmatched == -1);
  // the child of a node, by the number of the part
  static_assert(nn::child(tree, 0, 5) > nn::child(tree, 0, 1));
  CHECK(tree[nn::child(tree, 0, 5)].name == std::string_view("head"));
}

TEST_CASE("a module is printed as a tree, with the types of its parameters") {
  CHECK(nn::describe(nn::mlp<double>(2, 3, 1)) ==
        "up\n"
        "  weight  f64[3, 2] not initialised yet\n"
        "  bias  f64[3] not initialised yet\n"
        "activation\n"
        "down\n"
        "  weight  f64[1, 3] not initialised yet\n"
        "  bias  f64[1] not initialised yet\n");
}

TEST_SUITE_END();

TEST_CASE("a module on a mesh: the numbers of one device, under any placements") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(
        world, {world.size() / (world.size() > 1 ? 2 : 1), world.size() > 1 ? 2 : 1});
    RandomState state{4, 0};
    const auto alone = nn::make(nn::mlp<double>(5, 3, 2), state);
    const auto compare = [&](auto... p) {
      manual_seed(world, 4);
      const auto m = nn::place(nn::mlp<double>(5, 3, 2), mesh, p...);
      CHECK(distance(m.up.weight.full_tensor(), alone.up.weight.data()) == 0);
      CHECK(distance(m.up.bias.full_tensor(), alone.up.bias.data()) == 0);
      CHECK(distance(m.down.weight.full_tensor(), alone.down.weight.data()) == 0);
      CHECK(random_state(world) == state);
      return m;
    };
    const auto whole = compare();
    static_assert(
        std::is_same_v<decltype(whole.up.weight.placements()), Placements<Replicate, Replicate>>);
    compare(Shard<0>{}, Replicate{});
    compare(Shard<0>{}, Shard<0>{});
    const auto again = nn::place(whole, mesh, Replicate{}, Shard<0>{});
    CHECK(distance(again.down.weight.full_tensor(), alone.down.weight.data()) == 0);
    const auto from_tensors = nn::place(alone, mesh, Shard<0>{}, Replicate{});
    CHECK(distance(from_tensors.down.weight.full_tensor(), alone.down.weight.data()) == 0);
    const auto line = init_device_mesh<pp>(world, {world.size()});
    const auto elsewhere = nn::place(again, line, Shard<0>{});
    CHECK(distance(elsewhere.up.weight.full_tensor(), alone.up.weight.data()) == 0);
  });
}

TEST_CASE("tracking is part of a module's type; storage is shared; buffers are not tracked") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    manual_seed(world, 4);
    const auto plain = nn::place(network<double>(2), mesh);
    const auto m = requires_grad(plain);
    static_assert(tape::is_tracked<std::remove_cvref_t<decltype(m.head.weight)>>);
    static_assert(is_dtensor<std::remove_cvref_t<decltype(m.seen.value)>>);
    CHECK(m.head.weight.value().to_local().data() == plain.head.weight.to_local().data());
    const Tensor<double, 2> x({4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 1, 0, 1, 1, 0, 2});
    const Tensor<index_t, 1> classes({4}, {0, 1, 2, 0});
    const auto rows = distribute_tensor(x, mesh, Shard<0>{});
    backward(cross_entropy(m(rows), distribute_tensor(classes, mesh, Shard<0>{})));
    int with = 0;
    nn::parameters(m, [&](const auto& p) { with += has_grad(p) ? 1 : 0; });
    CHECK(with == 12);
    zero_grad(m);
    nn::parameters(m, [&](const auto& p) { CHECK_FALSE(has_grad(p)); });
    const auto y = detach(m)(rows);
    static_assert(is_dtensor<std::remove_cvref_t<decltype(y)>>);
    CHECK(contains(nn::describe(m), "head\n  weight  f64[3, 4] (Replicate) on dp=" +
                                        std::to_string(world.size()) + " with gradient\n"));
    CHECK(contains(nn::describe(m), "seen (buffer)  i64[2] (Replicate)"));
  });
}
