// Plans of products of several arrays, against all orders and all ways to shard them.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/ops/products/einsum.hpp>

#include "../placed.hpp"
#include "errors.hpp"
#include "naive_product.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace contraction_plans {

/// All orders of products of the sets in `arrays`, by exhaustion: the fewest multiplications on one
/// rank.
index_t fewest_by_exhaustion(const std::vector<std::string>& arrays, const std::string& result,
                             const std::array<index_t, 26>& extents) {
  if (arrays.size() == 1) return 0;
  index_t best = -1;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    for (std::size_t k = i + 1; k < arrays.size(); ++k) {
      std::vector<std::string> rest;
      std::string others = result, both, kept;
      for (std::size_t o = 0; o < arrays.size(); ++o)
        if (o != i && o != k) rest.push_back(arrays[o]), others += arrays[o];
      index_t here = 1;
      for (const char c : arrays[i] + arrays[k])
        if (both.find(c) == both.npos) {
          both += c;
          here *= extents[std::size_t(c - 'a')];
          if (others.find(c) != others.npos) kept += c;
        }
      rest.push_back(kept);
      const index_t all = here + fewest_by_exhaustion(rest, result, extents);
      if (best < 0 || all < best) best = all;
    }
  return best;
}

/// An array of a product on one axis: its letters and placement.
struct Held {
  std::string letters;
  Placement on{};
};

/// What the products of `arrays` receive and multiply on an axis of n ranks, by exhaustion over all
/// orders, and all ways to shard each product.
struct OnAxis {
  index_t n;
  std::array<index_t, 26> extents;
  std::string result;
  Placement asked;

  using Cost = std::pair<index_t, index_t>;

  Shape shape(const std::string& letters) const {
    Shape s = Shape::filled(int(letters.size()), 0);
    for (std::size_t d = 0; d < letters.size(); ++d)
      s[int(d)] = extents[std::size_t(letters[d] - 'a')];
    return s;
  }
  index_t moved(const std::string& letters, const Placement& from, const Placement& to) const {
    const Layout source{{from}, 1}, target{{to}, 1};
    const Shape mesh = Shape::filled(1, n);
    return received_bytes(choose_plan(source, target, shape(letters), mesh, 8), mesh,
                          shape(letters), 8);
  }
  static bool can_move(const Placement& from, const Placement& to) {
    return !to.is_partial() || from == to;
  }

  Cost fewest(const std::vector<Held>& arrays) const {
    Cost best{-1, -1};
    const auto offer = [&](const Cost& cost) {
      if (best.first < 0 || cost < best) best = cost;
    };
    if (arrays.size() == 1) {
      if (can_move(arrays[0].on, asked)) offer({moved(result, arrays[0].on, asked), 0});
      return best;
    }
    for (std::size_t i = 0; i < arrays.size(); ++i)
      for (std::size_t k = i + 1; k < arrays.size(); ++k) each_choice(arrays, i, k, offer);
    return best;
  }

 private:
  template <class Offer>
  void each_choice(const std::vector<Held>& arrays, std::size_t i, std::size_t k,
                   const Offer& offer) const {
    const std::string &x = arrays[i].letters, &w = arrays[k].letters;
    std::vector<Held> rest;
    std::string others = result, both;
    for (std::size_t o = 0; o < arrays.size(); ++o)
      if (o != i && o != k) rest.push_back(arrays[o]), others += arrays[o].letters;
    Held y;
    for (const char c : x + w)
      if (both.find(c) == both.npos) both += c;
    for (const char c : rest.empty() ? result : both)
      if (others.find(c) != others.npos) y.letters += c;
    const auto shard = [](const std::string& letters, char c) {
      const std::size_t d = letters.find(c);
      return d == letters.npos ? Placement::replicate() : Placement::shard(int(d));
    };
    const Placement sum = Placement::partial(ReduceOp::sum);
    const auto choose = [&](const Placement& on_x, const Placement& on_w, const Placement& on_y,
                            char split) {
      if (!can_move(arrays[i].on, on_x) || !can_move(arrays[k].on, on_w)) return;
      index_t work = 1;
      for (const char c : both) {
        const index_t extent = extents[std::size_t(c - 'a')];
        work *= c == split ? (extent + n - 1) / n : extent;
      }
      std::vector<Held> next = rest;
      next.push_back({y.letters, on_y});
      const Cost then = fewest(next);
      if (then.first >= 0)
        offer({moved(x, arrays[i].on, on_x) + moved(w, arrays[k].on, on_w) + then.first,
               work + then.second});
    };
    choose({}, {}, {}, '\0');
    choose(sum, {}, sum, '\0');
    choose({}, sum, sum, '\0');
    for (const char c : both)
      choose(shard(x, c), shard(w, c),
             y.letters.find(c) == y.letters.npos ? sum : shard(y.letters, c), c);
  }
};

}  // namespace contraction_plans

using namespace contraction_plans;

TEST_CASE("no order and no sharding of four products on an axis receives less than the plan") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {3}, TestDevice{});
    std::array<index_t, 26> extents{};
    const auto all = [&]<class P, class Q>(P, Q, const std::array<index_t, 5>& e) {
      std::copy(e.begin(), e.end(), extents.begin());
      const auto x = placed<double, P>(mesh, std::array<index_t, 2>{e[0], e[1]}, 0);
      const auto v = placed<double, Q>(mesh, std::array<index_t, 3>{e[1], e[2], e[4]}, 1);
      const auto w = placed<double, P>(mesh, std::array<index_t, 2>{e[2], e[3]}, 2);
      const auto u = placed<double, Q>(mesh, std::array<index_t, 2>{e[3], e[4]}, 3);
      using Asked = Placements<Shard<0>>;
      const ContractionPlan plan = explain<Asked>("ab,bce,cd,de->ae"_ein, {}, x, v, w, u);
      const OnAxis axis{3, extents, "ae", Placement::shard(0)};
      const OnAxis::Cost fewest = axis.fewest(
          {{"ab", x.layout[0]}, {"bce", v.layout[0]}, {"cd", w.layout[0]}, {"de", u.layout[0]}});
      CHECK(plan.bytes == fewest.first);
      CHECK(plan.multiplications == fewest.second);
    };
    for (const std::array<index_t, 5>& e :
         {std::array<index_t, 5>{5, 2, 7, 4, 3}, std::array<index_t, 5>{1, 9, 2, 8, 4}}) {
      all(Placements<Shard<0>>{}, Placements<Replicate>{}, e);
      all(Placements<Shard<1>>{}, Placements<Shard<1>>{}, e);
      all(Placements<Partial<Sum>>{}, Placements<Shard<0>>{}, e);
    }
  });
}

TEST_CASE("the order on one rank has the fewest multiplications of all") {
  const auto check = [](const auto& text, const std::vector<std::string>& words,
                        const std::string& result, const std::array<index_t, 26>& extents,
                        const auto&... x) {
    CHECK(explain(text, {}, x...).multiplications == fewest_by_exhaustion(words, result, extents));
  };
  const auto zeros = [](auto... e) { return Tensor<double, int(sizeof...(e))>({index_t(e)...}); };
  for (const std::array<index_t, 26>& e :
       {std::array<index_t, 26>{2, 9, 3, 7, 5, 4}, std::array<index_t, 26>{30, 1, 2, 40, 3, 8},
        std::array<index_t, 26>{4, 0, 6, 2, 9, 1}}) {
    check("ab,bc,cd,de,ef->af"_ein, {"ab", "bc", "cd", "de", "ef"}, "af", e, zeros(e[0], e[1]),
          zeros(e[1], e[2]), zeros(e[2], e[3]), zeros(e[3], e[4]), zeros(e[4], e[5]));
    check("abc,bd,cde,ef,fa->d"_ein, {"abc", "bd", "cde", "ef", "fa"}, "d", e,
          zeros(e[0], e[1], e[2]), zeros(e[1], e[3]), zeros(e[2], e[3], e[4]), zeros(e[4], e[5]),
          zeros(e[5], e[0]));
    check("ab,ac,ad,a->bcd"_ein, {"ab", "ac", "ad", "a"}, "bcd", e, zeros(e[0], e[1]),
          zeros(e[0], e[2]), zeros(e[0], e[3]), zeros(e[0]));
  }
}

TEST_CASE("sizes decide which matrix of a product stays") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {4}, TestDevice{});
    const auto plan = [&](index_t m, index_t k, index_t n) {
      const auto x = placed<double, Placements<Shard<0>>>(mesh, std::array<index_t, 2>{m, k}, 0);
      const auto w = placed<double, Placements<Shard<0>>>(mesh, std::array<index_t, 2>{k, n}, 1);
      const auto y = einsum<Placements<Shard<0>>>("ik,kj->ij"_ein, fewest_bytes{}, x, w);
      check_equal(y, naive_product<double>("ik,kj->ij", {expected(x, 0), expected(w, 1)}));
      return explain<Placements<Shard<0>>>("ik,kj->ij"_ein, {}, x, w);
    };
    // x stays, w [8, 4] is gathered: 3/4 of 32 numbers
    CHECK(plan(64, 8, 4).bytes == 24 * 8);
    // w stays; x [4, 64] is exchanged to columns, 3/4 of 64 numbers, and y reduced, 3 of 8 numbers
    CHECK(plan(4, 64, 8).bytes == (48 + 24) * 8);
  });
}

TEST_CASE("a memory limit excludes plans, and an impossible one is an error") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    const auto x = placed<double, Placements<Shard<0>>>(mesh, std::array<index_t, 2>{2, 40}, 0);
    const auto v = placed<double, Placements<Replicate>>(mesh, std::array<index_t, 2>{40, 2}, 1);
    const auto w = placed<double, Placements<Replicate>>(mesh, std::array<index_t, 2>{2, 60}, 2);
    const ContractionPlan free = explain("ab,bc,cd->ad"_ein, {}, x, v, w);
    const fewest_bytes limit{.memory_limit = free.memory - 1};
    const std::string error = error_of([&] { einsum("ab,bc,cd->ad"_ein, {8}, x, v, w); });
    CHECK(error.find("einsum: no order of products holds at most 8 bytes per rank") != error.npos);
    CHECK(error.find("[2, 40] and [40, 2] and [2, 60]") != error.npos);
    const ContractionPlan less = explain("ab,bc,cd->ad"_ein, limit, x, v, w);
    CHECK(less.memory < free.memory);
    CHECK(less.bytes >= free.bytes);
    check_equal(
        einsum("ab,bc,cd->ad"_ein, limit, x, v, w),
        naive_product<double>("ab,bc,cd->ad", {expected(x, 0), expected(v, 1), expected(w, 2)}));
  });
}

TEST_CASE("operands of a product whose extents differ are an error that names them") {
  const Tensor<double, 2> x({2, 3}), v({4, 5}), w({5, 6});
  const std::string error = error_of([&] { einsum("ab,bc,cd->ad"_ein, x, v, w); });
  CHECK(error.find("einsum: the extents of 'b' in ab,bc,cd->ad differ: operand 1 has 4") !=
        error.npos);
}
