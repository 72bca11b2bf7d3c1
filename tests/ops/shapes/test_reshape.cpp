#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/ops/shapes/transpose.hpp>

#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using Extents1 = std::array<index_t, 1>;
using Extents2 = std::array<index_t, 2>;
using Extents3 = std::array<index_t, 3>;
using Extents4 = std::array<index_t, 4>;

/// The same elements with other extents.
template <class T>
Array<T> reshaped(Array<T> array, const naive::Indices& shape) {
  array.shape = shape;
  return array;
}

}  // namespace

TEST_CASE("merged and split dimensions of a local tensor share its elements") {
  const auto x = held<double, 3>({}, Shape(Extents3{4, 3, 2}), {}, {}, 0);
  const auto rows = flatten(x, dim<0, 1>{});
  CHECK(rows.shape() == Extents2{12, 2});
  CHECK(rows.data() == x.data());
  CHECK(flatten(x).shape() == Extents1{24});
  CHECK(flatten(x, dim<-1>{}).shape() == Extents3{4, 3, 2});
  const auto split = unflatten(rows, dim<0>{}, {2, -1, 3});
  CHECK(split.shape() == Extents4{2, 2, 3, 2});
  CHECK(split.data() == x.data());
  CHECK(reshape(x, {6, -1}).shape() == Extents2{6, 4});
  CHECK(reshape(x, {6, -1}).data() == x.data());
  CHECK(reshape(x, {24}).strides() == Extents1{1});
}

TEST_CASE("dimensions whose strides do not merge are copied, in row-major order") {
  const auto x = held<double, 3>({}, Shape(Extents3{4, 3, 2}), {}, {}, 0);
  const auto a = x.clone().to(Host{});
  const auto transposed = permute(x, dim<1, 0, 2>{});
  const auto rows = flatten(transposed, dim<0, 1>{});
  CHECK(rows.data() != x.data());
  CHECK(flatten(transposed, dim<1, 2>{}).shape() == Extents2{3, 8});
  const auto host = rows.to(Host{});
  const auto other = reshape(transposed, {2, 12}).to(Host{});
  for (index_t i = 0; i < 12; ++i)
    for (index_t j = 0; j < 2; ++j) {
      CHECK(host(i, j) == a(i % 4, i / 4, j));
      CHECK(other.data()[2 * i + j] == a(i % 4, i / 4, j));
    }
  // the stride of an extent of 1 does not matter
  const auto one = held<double, 3>({}, Shape(Extents3{4, 1, 2}), {}, {}, 0);
  CHECK(flatten(permute(one, dim<1, 0, 2>{}), dim<0, 1>{}).data() == one.data());
}

TEST_CASE("shards of the first dimension stay, nothing moves") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<2>, Partial<Sum>, Partial<Max>>([&](auto p) {
      for (const Extents3 extents : {Extents3{8, 3, 5}, {0, 3, 2}, {4, 1, 1}}) {
        const auto x = placed<double, decltype(p)>(mesh, extents, 0);
        CommTrace trace(world);
        const auto rows = flatten(x, dim<0, 1>{});
        const auto back = unflatten(rows, dim<0>{}, {extents[0], extents[1]});
        CHECK(trace.events().empty());
        CHECK(rows.to_local().data() == x.to_local().data());
        static_assert(std::is_same_v<decltype(back), decltype(x)>);
        check_equal(rows, reshaped(expected(x, 0), {extents[0] * extents[1], extents[2]}));
        check_equal(back, expected(x, 0));
      }
    });
  });
}

TEST_CASE("the placements of merged and split dimensions stand in their types") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    const auto x = placed<float, Placements<Shard<0>, Shard<2>>>(mesh, Extents4{4, 3, 2, 2}, 0);
    // y[S0,S1] = flatten(flatten(x[S0,S2], dim<0, 1>), dim<1, 2>): tokens by heads
    const auto y = flatten(flatten(x, dim<0, 1>{}), dim<1, 2>{});
    static_assert(lies<decltype(y), Shard<0>, Shard<1>>);
    check_equal(y, reshaped(expected(x, 0), {12, 4}));
    const auto nested = placed<float, Placements<Shard<0>, Shard<0>>>(mesh, Extents2{4, 3}, 0);
    static_assert(lies<decltype(flatten(nested)), Shard<0>, Shard<0>>);
    check_equal(flatten(nested), reshaped(expected(nested, 0), {12}));
  });
}

namespace {

/// The row-major numbers of the elements of a rank.
std::vector<index_t> numbers(const Layout& layout, const naive::Indices& shape,
                             const naive::Indices& mesh, const naive::Indices& at) {
  std::vector<index_t> result;
  for (const naive::Indices& i : naive::elements(layout, shape, mesh, at)) {
    index_t n = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) n = n * shape[d] + i[d];
    result.push_back(n);
  }
  return result;
}
/// Compares y with the elements of x in row-major order, and what this rank receives with what it
/// lacks
template <class X, class Op>
void check_regrouped(const X& x, const Op& op) {
  CommTrace trace(x.mesh());
  const auto y = op(x);
  using Y = std::remove_cvref_t<decltype(y)>;
  const auto mesh = naive::to_indices(x.mesh().extents()),
             at = naive::to_indices(x.mesh().state().coordinate());
  const auto had = numbers(x.layout, naive::to_indices(Shape(x.shape())), mesh, at);
  index_t lacks = 0;
  for (const index_t n : numbers(Y::layout, naive::to_indices(Shape(y.shape())), mesh, at))
    lacks += std::find(had.begin(), had.end(), n) == had.end();
  CHECK(trace.received_bytes() == lacks * index_t(sizeof(typename X::value_type)));
  trace.clear();
  auto want = expected(x, 0);
  want.shape = naive::to_indices(Shape(y.shape()));
  check_equal(y, want);
}

}  // namespace

TEST_CASE("merged and split dimensions whose shards end elsewhere: ranks receive what they lack") {
  on_ranks({2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    for (const Extents3 e : {Extents3{6, 4, 3}, Extents3{3, 5, 2}, Extents3{1, 7, 2},
                             Extents3{2, 1, 5}, Extents3{0, 3, 2}, Extents3{5, 0, 2}}) {
      each_placements<1, Shard<0>, Shard<1>, Shard<2>>([&](auto p) {
        const auto x = placed<double, decltype(p)>(mesh, e, 0);
        about(described(x), [&] {
          check_regrouped(x, [](const auto& of) { return flatten(of); });
          check_regrouped(x, [](const auto& of) { return flatten(of, dim<0, 1>{}); });
          check_regrouped(x, [](const auto& of) { return flatten(of, dim<1, 2>{}); });
          check_regrouped(x, [&](const auto& of) { return unflatten(of, dim<0>{}, {e[0], 1}); });
          if (e[0] == 6) {
            check_regrouped(x, [&](const auto& of) { return unflatten(of, dim<0>{}, {2, 3}); });
            check_regrouped(x, [&](const auto& of) { return unflatten(of, dim<0>{}, {3, 2}); });
            check_regrouped(x, [&](const auto& of) { return unflatten(of, dim<1>{}, {2, 2}); });
            check_regrouped(x, [&](const auto& of) { return reshape(of, {8, 9}); });
            check_regrouped(x, [&](const auto& of) { return reshape(of, {1, 18, 2, 2}); });
          }
          check_regrouped(x, [&](const auto& of) { return reshape(of, {e[0] * e[2], e[1]}); });
        });
      });
    }
  });
}
TEST_CASE("two axes shard merged dimensions, the same one or different ones") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2}, TestDevice{});
    for (const Extents3 e :
         {Extents3{6, 4, 3}, Extents3{3, 5, 2}, Extents3{1, 7, 2}, Extents3{5, 2, 2}}) {
      each_placements<2, Shard<0>, Shard<1>, Shard<2>, Replicate>([&](auto p) {
        const auto x = placed<float, decltype(p)>(mesh, e, 0);
        about(described(x), [&] {
          check_regrouped(x, [](const auto& of) { return flatten(of); });
          check_regrouped(x, [](const auto& of) { return flatten(of, dim<0, 1>{}); });
          check_regrouped(x, [](const auto& of) { return flatten(of, dim<1, 2>{}); });
          check_regrouped(x, [&](const auto& of) { return reshape(of, {e[0] * e[2], e[1]}); });
        });
      });
    }
  });
}

TEST_CASE("a requested placement that shards no merged dimension works for all extents") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = placed<double, Placements<Shard<0>>>(mesh, Extents3{5, 4, 7}, 0);
    check_equal(flatten<Placements<Replicate>>(x, dim<0, 1>{}), reshaped(expected(x, 0), {20, 7}));
    check_equal(flatten<Placements<Shard<1>>>(x, dim<0, 1>{}), reshaped(expected(x, 0), {20, 7}));
    const auto whole = x.redistribute(Replicate{});
    check_equal(flatten<Placements<Shard<0>>>(whole, dim<0, 1>{}),
                reshaped(expected(x, 0), {20, 7}));
    check_equal(unflatten<Placements<Shard<1>>>(whole, dim<1>{}, {2, 2}),
                reshaped(expected(x, 0), {5, 2, 2, 7}));
  });
}

TEST_CASE("extents that do not fit are an error") {
  const auto x = held<double, 2>({}, Shape(Extents2{4, 3}), {}, {}, 0);
  CHECK(error_of([&] {
          unflatten(x, dim<0>{}, {3, 2});
        }).find("unflatten: 4 elements do not fit into extents [3, 2]") == 0);
  CHECK(error_of([&] { reshape(x, {5, -1}); })
            .find("reshape: 12 elements do not fit into extents "
                  "[5, -1]; at most one of them may be -1") == 0);
  CHECK(error_of([&] { reshape(x, {-1, -1}); }).find("reshape: 12 elements") == 0);
  CHECK(error_of([&] { reshape(x, {-2, -6}); }).find("reshape: 12 elements") == 0);
  CHECK(error_of([&] { reshape(x, {0, -1}); }).find("reshape: 12 elements") == 0);
}

TEST_CASE("ranks outside of a mesh take part in nothing") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, {0, 1}, TestDevice{});
    const auto x = zeros<double>({4, 6}, mesh, Shard<0>{});
    const auto y = unflatten(flatten(x), dim<0>{}, {2, -1, 3});
    if (mesh.is_member()) CHECK(y.shape() == Extents3{2, 4, 3});
    else CHECK(y.to_local().size() == 0);
  });
}
