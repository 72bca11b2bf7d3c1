// Redistributing many tensors at once: the same results as one by one, in few rounds.
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/dtensor/redistribute_all.hpp>

#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;

namespace {

/// Element (i, j) of the k-th of many arrays. Their extents are empty, smaller than a mesh, uneven,
/// or too large to be packed with others.
double element_of_many(int k, index_t i, index_t j) { return double(1000 * k + 31 * i + j); }
std::array<index_t, 2> extents_of_many(int k) {
  constexpr index_t extents[] = {0, 1, 3, 5, 16, 33};
  if (k == 20) return {300, 400};
  return {extents[k % 6], extents[k / 6 % 6]};
}
constexpr int many = 36;

Tensor<double, 2> array_of_many(int k) {
  const Tensor<double, 2> x(extents_of_many(k));
  for (index_t i = 0; i < x.extent(0); ++i)
    for (index_t j = 0; j < x.extent(1); ++j) x(i, j) = element_of_many(k, i, j);
  return x;
}

/// Whether a rank holds its part of the k-th array multiplied by `times`.
template <class X>
bool holds_part(const X& x, int k, double times) {
  const Box box = x.local_box();
  bool holds = x.shape() == extents_of_many(k);
  for (index_t i = box.begin[0]; i < box.end[0]; ++i)
    for (index_t j = box.begin[1]; j < box.end[1]; ++j)
      holds = holds &&
              x.to_local()(i - box.begin[0], j - box.begin[1]) == times * element_of_many(k, i, j);
  return holds;
}

template <class From, class To>
void check_many(const auto& mesh, From from, To to, double times) {
  const auto one = [&](int k) {
    const auto x = array_of_many(k);
    if constexpr (detail::PlacementTraits<From>::value(2).is_partial())
      return from_local(x, mesh, from);
    else return from_local(x, mesh, Replicate{}).redistribute(from);
  };
  std::vector<decltype(one(0))> list;
  for (int k = 0; k < many; ++k) list.push_back(one(k));
  const auto results = redistribute_all(list, to);
  bool hold = results.size() == many;
  for (int k = 0; k < many; ++k) hold = hold && holds_part(results[std::size_t(k)], k, times);
  CHECK(hold);
}

}  // namespace

TEST_CASE("many tensors are redistributed together as each alone") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const double n = world.size();
    check_many(mesh, Shard<0>{}, Shard<1>{}, 1);
    check_many(mesh, Shard<1>{}, Replicate{}, 1);
    check_many(mesh, Partial<Sum>{}, Shard<0>{}, n);
    check_many(mesh, Partial<Sum>{}, Replicate{}, n);
    CHECK(
        redistribute_all(std::vector<decltype(zeros<double>({1}, mesh, Shard<0>{}))>{}, Replicate{})
            .empty());
  });
}

TEST_CASE("tensors with different redistributions are redistributed together") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const double n = world.size();
    const auto whole = [&](int k) { return from_local(array_of_many(k), mesh, Replicate{}); };
    const auto addend = [&](int k) { return from_local(array_of_many(k), mesh, Partial<Sum>{}); };
    const auto [a, b, c, d, e] = redistribute_all(
        to(whole(35).redistribute(Shard<0>{}), Shard<1>{}),
        to(whole(20).redistribute(Shard<1>{}), Replicate{}), to(addend(34), Shard<1>{}),
        to(addend(29), Replicate{}), to(whole(33).redistribute(Shard<1>{}), Shard<0>{}));
    CHECK(holds_part(a, 35, 1));
    CHECK(holds_part(b, 20, 1));
    CHECK(holds_part(c, 34, n));
    CHECK(holds_part(d, 29, n));
    CHECK(holds_part(e, 33, 1));
  });
}
