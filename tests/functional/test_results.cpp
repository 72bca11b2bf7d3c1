// Results of functional collectives: every function, dimension and kind of element type, contiguous
// and strided, against loops over all ranks.
#include <doctest/doctest.h>

#include <cleave/functional.hpp>

#include "ranks.hpp"
#include "tensors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// The reduction over `ranks` ranks of their cells at an index.
template <class T>
T reduced_cell(ReduceOp op, int ranks, index_t i, index_t j, index_t k) {
  return reduced<T>(op, ranks, [&](int r) { return cell<T>(r, i, j, k); });
}

/// Whether products of that many ranks' cells are exact in T.
template <class T>
bool is_exact(ReduceOp op, int ranks) {
  return op != ReduceOp::product || ranks <= 2 || !std::is_same_v<T, half>;
}

index_t& along(Extents3& extents, int dim) { return extents[std::size_t(dim)]; }

/// An index into a concatenation along `dim` of parts of extent `width`: the part, and the index
/// within it.
struct Place {
  int part;
  Extents3 inside;

  Place(Extents3 index, int dim, index_t width)
      : part(int(along(index, dim) / width)), inside(index) {
    along(inside, dim) %= width;
  }
};

template <class T>
T cell_at(int rank, const Extents3& at) {
  return cell<T>(rank, at[0], at[1], at[2]);
}

}  // namespace

TEST_CASE("a functional all-reduce gives every rank the reduction and leaves its input alone") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    for_some_types([&]<class T>(T) {
      for (const bool strided : {false, true})
        for (const Extents3& extents : {Extents3{3, 2, 5}, Extents3{0, 2, 5}, Extents3{17, 19, 23}})
          for (const ReduceOp op : all_reductions) {
            if (!has_reduction<T>(op) || !is_exact<T>(op, world.size())) continue;
            const auto x = cells<T>(world.rank(), extents, strided);
            const Async<Tensor<T, 3, TestDevice>> y = functional::all_reduce(x, op, world);
            CHECK(difference(
                      *y, extents,
                      [&](index_t i, index_t j, index_t k) {
                        return reduced_cell<T>(op, world.size(), i, j, k);
                      },
                      tolerance<T>(op, world)) == "");
            CHECK(y->contiguous());
            CHECK(unmodified(x, world.rank()));
          }
    });
  });
}

TEST_CASE("a scalar can be reduced and broadcast") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const Tensor<double, 0, TestDevice> x;
    x.fill_(1 + world.rank());
    CHECK(functional::all_reduce(x, Sum{}, world)->item() == world.size() * (world.size() + 1) / 2);
    CHECK(functional::broadcast(x, world.size() - 1, world)->item() == world.size());
    CHECK(x.item() == 1 + world.rank());
  });
}

TEST_CASE("a functional all-gather concatenates along any dimension") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    for_some_types([&]<class T>(T) {
      for (const bool strided : {false, true})
        for (const Extents3& mine : {Extents3{3, 2, 5}, Extents3{1, 1, 1}, Extents3{3, 0, 5}})
          for (int dim = 0; dim < 3; ++dim) {
            const auto x = cells<T>(world.rank(), mine, strided);
            const auto y = functional::all_gather(x, strided ? dim - 3 : dim, world);
            Extents3 whole = mine;
            along(whole, dim) *= world.size();
            CHECK(difference(*y, whole, [&](index_t i, index_t j, index_t k) {
                    const Place from({i, j, k}, dim, mine[std::size_t(dim)]);
                    return cell_at<T>(from.part, from.inside);
                  }) == "");
            CHECK(unmodified(x, world.rank()));
          }
    });
  });
}

TEST_CASE("a functional reduce-scatter gives every rank its part along any dimension") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const int n = world.size(), rank = world.rank();
    for_some_types([&]<class T>(T) {
      for (const bool strided : {false, true})
        for (const ReduceOp op : all_reductions)
          for (int dim = 0; dim < 3; ++dim)
            for (const index_t width : {0, 1, 3}) {
              if (!has_reduction<T>(op) || !is_exact<T>(op, n)) continue;
              Extents3 extents{3, 2, 5}, part = extents;
              along(extents, dim) = width * n;
              along(part, dim) = width;
              const auto x = cells<T>(rank, extents, strided);
              const auto y = functional::reduce_scatter(x, op, strided ? dim - 3 : dim, world);
              CHECK(difference(
                        *y, part,
                        [&](index_t i, index_t j, index_t k) {
                          Extents3 at{i, j, k};
                          along(at, dim) += rank * width;
                          return reduced_cell<T>(op, n, at[0], at[1], at[2]);
                        },
                        tolerance<T>(op, world)) == "");
              CHECK(unmodified(x, rank));
            }
    });
  });
}

TEST_CASE("a functional all-to-all splits along one dimension and concatenates along another") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const int n = world.size(), rank = world.rank();
    for_some_types([&]<class T>(T) {
      for (const bool strided : {false, true})
        for (int split = 0; split < 3; ++split)
          for (int concat = 0; concat < 3; ++concat) {
            Extents3 extents{3, 2, 4};
            along(extents, split) = 2 * n;
            const auto x = cells<T>(rank, extents, strided);
            const auto y = functional::all_to_all(x, split, concat - 3, world);
            Extents3 part = extents;
            along(part, split) = 2;
            Extents3 whole = part;
            along(whole, concat) *= n;
            CHECK(difference(*y, whole, [&](index_t i, index_t j, index_t k) {
                    Place from({i, j, k}, concat, part[std::size_t(concat)]);
                    along(from.inside, split) += 2 * rank;
                    return cell_at<T>(from.part, from.inside);
                  }) == "");
            CHECK(unmodified(x, rank));
            if (split != concat) continue;
            const auto same = functional::all_to_all(x, split, world);
            const Tensor<T, 3> expected = y->to(Host{});
            CHECK(difference(*same, whole, [&](index_t i, index_t j, index_t k) {
                    return expected(i, j, k);
                  }) == "");
          }
    });
  });
}

TEST_CASE("a functional all-to-all moves parts of any sizes, also empty ones") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const int n = world.size(), rank = world.rank();
    const auto size = [](int from, int to) { return index_t((from * 2 + to * 3 + 1) % 4); };
    const auto place_of = [&](int from, int to) {
      index_t begin = 0;
      for (int r = 0; r < to; ++r) begin += size(from, r);
      return begin;
    };
    std::vector<index_t> sent, received;
    for (int r = 0; r < n; ++r) {
      sent.push_back(size(rank, r));
      received.push_back(size(r, rank));
    }
    for_some_types([&]<class T>(T) {
      for (const bool strided : {false, true})
        for (int dim = 0; dim < 3; ++dim) {
          Extents3 extents{3, 2, 4}, whole = extents;
          along(extents, dim) = place_of(rank, n);
          along(whole, dim) = 0;
          for (const index_t part : received) along(whole, dim) += part;
          const auto x = cells<T>(rank, extents, strided);
          const auto y = functional::all_to_all(x, sent, received, dim, world);
          CHECK(difference(*y, whole, [&](index_t i, index_t j, index_t k) {
                  Extents3 at{i, j, k};
                  int from = 0;
                  for (; along(at, dim) >= size(from, rank); ++from)
                    along(at, dim) -= size(from, rank);
                  along(at, dim) += place_of(from, rank);
                  return cell_at<T>(from, at);
                }) == "");
          CHECK(unmodified(x, rank));
        }
    });
  });
}

TEST_CASE("a functional broadcast copies the root's elements, also on the root") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    for_some_types([&]<class T>(T) {
      for (const bool strided : {false, true})
        for (int root = 0; root < world.size(); ++root) {
          const auto x = cells<T>(world.rank(), {3, 2, 5}, strided);
          const auto y = functional::broadcast(x, root, world);
          CHECK(unmodified(*y, root));
          CHECK(unmodified(x, world.rank()));
          CHECK(y->data() != x.data());
          CHECK(y->contiguous());
        }
    });
    CHECK(functional::broadcast(Tensor<float, 2, TestDevice>({0, 3}), 0, world)->shape()[1] == 3);
  });
}

TEST_CASE("a functional permute moves tensors along pairs; ranks that receive nothing get zeros") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const int n = world.size(), rank = world.rank();
    std::vector<functional::Hop> ring, reversal, some;
    for (int r = 0; r < n; ++r) {
      ring.push_back({r, (r + 1) % n});
      reversal.push_back({n - 1 - r, r});
      if (r % 3 == 0 && r + 1 < n) some.push_back({r, r + 1});
    }
    for_some_types([&]<class T>(T) {
      for (const bool strided : {false, true}) {
        const auto x = cells<T>(rank, {3, 2, 5}, strided);
        CHECK(unmodified(*functional::permute(x, ring, world), (rank + n - 1) % n));
        CHECK(unmodified(*functional::permute(x, reversal, world), n - 1 - rank));
        const auto moved = functional::permute(x, some, world);
        if (rank % 3 == 1) CHECK(unmodified(*moved, rank - 1));
        else CHECK(difference(*moved, {3, 2, 5}, [](auto...) { return T{}; }) == "");
        const auto none = functional::permute(x, {}, world);
        CHECK(difference(*none, {3, 2, 5}, [](auto...) { return T{}; }) == "");
        CHECK(unmodified(x, rank));
      }
    });
  });
}

TEST_CASE("a reduction is named by a type, a value or a word") {
  on_ranks({1, 2, 3}, [](World& world) {
    const int n = world.size();
    const auto x = Tensor<double, 1>({1}, {double(1 + world.rank())}).to(TestDevice{});
    const auto first = [&](const auto& op) { return functional::all_reduce(x, op, world)->item(); };
    const double sum = n * (n + 1) / 2.0, product = n < 3 ? n : 6;
    CHECK(first(Sum{}) == sum);
    CHECK(first(ReduceOp::sum) == sum);
    CHECK(first("sum") == sum);
    CHECK(first("SUM") == sum);
    CHECK(first(std::string("Sum")) == sum);
    CHECK(first("avg") == sum / n);
    CHECK(first(Avg{}) == sum / n);
    CHECK(first("max") == n);
    CHECK(first(Max{}) == n);
    CHECK(first("MIN") == 1);
    CHECK(first(Min{}) == 1);
    CHECK(first(std::string_view("product")) == product);
    CHECK(first(Product{}) == product);
  });
}
