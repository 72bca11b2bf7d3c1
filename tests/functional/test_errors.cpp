// Errors of functional collectives: refused arguments, and what ranks learn of each other's errors.
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/comm/run.hpp>
#include <cleave/functional.hpp>

#include "errors.hpp"
#include "gpu.hpp"
#include "ranks.hpp"
#include "tensors.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_CASE("invalid arguments are refused before anything is communicated") {
  const World world(dry_communicator(1, 3));
  const Tensor<float, 2, TestDevice> x({5, 7});
  const Tensor<std::int64_t, 1, TestDevice> whole({3});
  const Tensor<std::complex<float>, 1, TestDevice> complex({3});
  const std::string share =
      ", which the 3 ranks of group 'world' cannot share equally; pad it, or "
      "redistribute a DTensor, whose shards may differ [shapes [5, 7]; rank 1]";
  CHECK(error_of([&] { (void)functional::reduce_scatter(x, Sum{}, 1, world); }) ==
        "functional::reduce_scatter: dimension 1 has 7 elements" + share);
  CHECK(error_of([&] { (void)functional::all_to_all(x, 0, 1, world); }) ==
        "functional::all_to_all: dimension 0 has 5 elements" + share);
  CHECK(error_of([&] {
          (void)functional::reduce_scatter_coalesced(std::tuple{whole, x}, Sum{}, 0, world);
        }) == "functional::reduce_scatter_coalesced: dimension 0 has 5 elements" + share);
  CHECK(error_of([&] { (void)functional::all_gather(x, 2, world); }) ==
        "functional::all_gather: dimension 2 of 2 does not exist [shapes [5, 7]; rank 1]");
  CHECK(error_of([&] { (void)functional::all_gather(x, -3, world); }) ==
        "functional::all_gather: dimension -3 of 2 does not exist [shapes [5, 7]; rank 1]");
  CHECK(error_of([&] { (void)functional::all_to_all(x, 0, 2, world); }) ==
        "functional::all_to_all: dimension 2 of 2 does not exist [shapes [5, 7]; rank 1]");
  CHECK(error_of([&] { (void)functional::all_gather_coalesced(std::tuple{x}, {0, 1}, world); }) ==
        "functional::all_gather_coalesced: 2 dimensions are given for 1 tensors [rank 1]");
  CHECK(error_of([&] { (void)functional::broadcast(x, 3, world); }) ==
        "functional::broadcast: the root is rank 3 of 3 [rank 1]");
  CHECK(error_of([&] { (void)functional::broadcast(x, -1, world); }) ==
        "functional::broadcast: the root is rank -1 of 3 [rank 1]");
  CHECK(error_of([&] { (void)functional::permute(x, {{0, 3}}, world); }) ==
        "functional::permute: the pair {0, 3} is outside of the group of 3 ranks [rank 1]");
  CHECK(error_of([&] { (void)functional::permute(x, {{0, 1}, {0, 2}}, world); }) ==
        "functional::permute: rank 0 is the source of two pairs [rank 1]");
  CHECK(error_of([&] { (void)functional::permute(x, {{0, 1}, {2, 1}}, world); }) ==
        "functional::permute: rank 1 is the destination of two pairs [rank 1]");
  CHECK(error_of([&] { (void)functional::all_reduce(x, "median", world); }) ==
        "functional::all_reduce: unknown reduction 'median'; use one of sum, avg, max, min, "
        "product, band, bor, bxor");
  CHECK(error_of([&] { (void)functional::all_reduce(whole, "avg", world); }) ==
        "functional::all_reduce: avg of int64 is not defined: an average requires a floating-point "
        "element type");
  CHECK(error_of([&] { (void)functional::reduce_scatter(complex, ReduceOp::max, 0, world); }) ==
        "functional::reduce_scatter: max of complex64 is not defined: complex numbers have no "
        "order");
  CHECK(error_of([&] { (void)functional::all_to_all(x, {2, 3}, {1, 1, 1}, 0, world); }) ==
        "functional::all_to_all: 2 sent sizes are given for 3 ranks [rank 1]");
  CHECK(error_of([&] { (void)functional::all_to_all(x, {1, 2, 2}, {1, 1}, 0, world); }) ==
        "functional::all_to_all: 2 received sizes are given for 3 ranks [rank 1]");
  CHECK(error_of([&] { (void)functional::all_to_all(x, {1, 2, 2}, {1, -1, 1}, 0, world); }) ==
        "functional::all_to_all: the size received from rank 1 is -1; sizes must not be negative "
        "[rank 1]");
  CHECK(error_of([&] { (void)functional::all_to_all(x, {6, -1, 0}, {1, 1, 1}, 0, world); }) ==
        "functional::all_to_all: the size sent to rank 1 is -1; sizes must not be negative "
        "[rank 1]");
  CHECK(error_of([&] { (void)functional::all_to_all(x, {1, 2, 1}, {1, 1, 1}, 0, world); }) ==
        "functional::all_to_all: the sent sizes add up to 4, but dimension 0 has 5 "
        "elements [shapes [5, 7]; rank 1]");
}

TEST_CASE("sizes that overflow are refused before anything is communicated") {
  const World world(dry_communicator(1, 3));
  const Tensor<float, 2, TestDevice> x({5, 7});
  constexpr index_t huge = index_t(1) << 62;
  std::int8_t value = 5;
  const auto wide = Tensor<std::int8_t, 2, TestDevice>::adopt(&value, {3, huge / 3}, {0, 0});
  const auto long_one = Tensor<std::int8_t, 1, TestDevice>::adopt(&value, {huge}, {0});
  const std::string together =
      " of the 3 ranks together has more elements than index_t can hold [shapes [";
  CHECK(error_of([&] { (void)functional::all_gather(long_one, 0, world); }) ==
        "functional::all_gather: dimension 0" + together + "4611686018427387904]; rank 1]");
  CHECK(contains(
      error_of([&] { (void)functional::all_gather_coalesced(std::tuple{x, long_one}, 0, world); }),
      "all_gather_coalesced: dimension 0" + together));
  CHECK(error_of([&] { (void)functional::all_to_all(wide, 0, world); }) ==
        "functional::all_to_all: the 3 ranks together have more elements than index_t can hold "
        "[shapes [3, 1537228672809129301]; rank 1]");
  CHECK(error_of([&] { (void)functional::all_to_all(x, {huge, huge, 5}, {1, 1, 1}, 0, world); }) ==
        "functional::all_to_all: the sum of the sent sizes does not fit in index_t [rank 1]");
  CHECK(error_of([&] { (void)functional::all_to_all(x, {1, 2, 2}, {huge, huge, 0}, 0, world); }) ==
        "functional::all_to_all: the sum of the received sizes does not fit in index_t [rank 1]");
  CHECK(error_of([&] { (void)functional::all_to_all(x, {1, 2, 2}, {huge, 0, 0}, 0, world); }) ==
        "Tensor: the product of the extents does not fit in index_t");
}

TEST_CASE("ranks that disagree about a part of an all-to-all both get an error, and can go on") {
  on_ranks({2}, [](World& world) {
    const auto x = ranks_number(world, 5);
    const bool first = world.rank() == 0;
    const std::string who = " [rank " + std::to_string(world.rank()) + "]";
    const std::vector<index_t> received =
        first ? std::vector<index_t>{2, 2} : std::vector<index_t>{4, 3};
    const auto moved = functional::all_to_all(x, {2, 3}, received, 0, world);
    CHECK(error_of([&] { (void)moved.wait(); }) ==
          "functional::all_to_all: rank 0 of group 'world' sends 3 to rank 1, which expects 4" +
              who);
    const Tensor<float, 2, TestDevice> wide({2, first ? 3 : 4});
    CHECK(error_of([&] { (void)functional::all_to_all(wide, {1, 1}, {1, 1}, 0, world).wait(); }) ==
          "functional::all_to_all: ranks " + std::to_string(world.rank()) + " and " +
              std::to_string(1 - world.rank()) +
              " of group 'world' have different extents in dimensions other than the split one" +
              who);
    CHECK(element(functional::all_reduce(x, Sum{}, world), 4) == 1);
  });
}

TEST_CASE("sizes of an all-to-all that two ranks disagree about are an error on all ranks") {
  on_ranks({3, 4, 7}, [](World& world) {
    const int n = world.size(), rank = world.rank();
    const auto x = ranks_number(world, n);
    const std::vector<index_t> ones(std::size_t(n), 1);
    std::vector<index_t> received = ones;
    if (rank == 1) received[0] = 2;
    const std::string group = " of group 'world' ", who = " [rank " + std::to_string(rank) + "]";
    for (int i = 0; i < 3; ++i) {
      CHECK(error_of([&] { (void)functional::all_to_all(x, ones, received, 0, world).wait(); }) ==
            (rank < 2
                 ? "functional::all_to_all: rank 0" + group + "sends 1 to rank 1, which expects 2"
                 : "functional::all_to_all: ranks 1 and 0" + group +
                       "disagree about the sizes that they send each other") +
                who);
      CHECK(element(functional::all_to_all(x, ones, ones, 0, world), n - 1) == n - 1);
    }
  });
}

TEST_CASE("a rank that fails wakes those that wait for a functional collective") {
  std::string texts[3];
  CHECK_THROWS_WITH(run_threads(3,
                                [&](World& world) {
                                  enter_gpu(world);
                                  const auto x = ranks_number(world, 100);
                                  (void)functional::all_reduce(x, Sum{}, world);
                                  if (world.rank() == 1) throw std::runtime_error("gone");
                                  const auto sum = functional::all_reduce(x, Sum{}, world);
                                  const auto all = functional::all_gather(x, 0, world);
                                  texts[world.rank()] = error_of([&] { (void)sum.wait(); });
                                  CHECK(error_of([&] { (void)all.wait(); }) != "");
                                }),
                    "gone");
  CHECK(contains(texts[0], "all_reduce: rank 1 failed: gone [rank 0]"));
  CHECK(contains(texts[2], "all_reduce: rank 1 failed: gone [rank 2]"));
}

TEST_CASE("extents that differ between ranks are an error at every check level") {
  on_ranks({2, 3}, [](World& world) {
    Communicator& group = communicator_on(TestDevice{}, world.communicator());
    const CheckLevel usual = group.state().check;
    const Tensor<float, 2, TestDevice> x({6, world.rank() == 1 ? 12 : 6});
    x.fill_(1);
    for (const CheckLevel level : {CheckLevel::collective, CheckLevel::local}) {
      // Messages of different sizes make a group of processes unusable; NCCL does not detect them.
      const std::string backend = group.backend();
      if (level == CheckLevel::local && (backend == "mpi" || backend == "nccl")) continue;
      group.state().check = level;
      for (const std::string& text :
           {error_of([&] { (void)functional::all_gather(x, 0, world).wait(); }),
            error_of([&] { (void)functional::all_to_all(x, 0, world).wait(); }),
            error_of([&] { (void)functional::reduce_scatter(x, Sum{}, 0, world).wait(); }),
            error_of([&] { (void)functional::all_reduce(x, Sum{}, world).wait(); }),
            error_of([&] { (void)functional::permute(x, {{0, 1}}, world).wait(); }),
            error_of([&] { (void)functional::broadcast(x, 0, world).wait(); })})
        CHECK(contains(text, "ranks of group 'world' disagree: rank 0 runs "));
    }
    group.state().check = usual;
  });
}

TEST_CASE("different dimensions or pairs are an error that shows both, and ranks can go on") {
  on_ranks({2, 3}, [](World& world) {
    Communicator& group = communicator_on(TestDevice{}, world.communicator());
    const CheckLevel usual = group.state().check;
    const int n = world.size(), odd = world.rank() == 1;
    const Tensor<float, 2, TestDevice> x({n, n}), large({120 * n, 120 * n});
    x.fill_(1);
    large.fill_(1);
    const std::vector<index_t> ones(std::size_t(n), 1);
    const std::vector<functional::Hop> there{{0, 1}}, back{{1, 0}};
    for (const CheckLevel level : {CheckLevel::collective, CheckLevel::local}) {
      const std::string backend = group.backend();
      if (level == CheckLevel::local && (backend == "mpi" || backend == "nccl")) continue;
      group.state().check = level;
      const auto check_refusal = [&](const auto& start, const char* first, const char* other) {
        const std::string text = error_of([&] { (void)start().wait(); });
        CHECK(contains(text, "ranks of group 'world' disagree: rank 0 runs "));
        CHECK(contains(text, std::string(" ") + first));
        CHECK(contains(text, std::string(" ") + other));
      };
      const char *rows = "along dimension 0", *columns = "along dimension 1";
      check_refusal([&] { return functional::all_gather(x, odd, world); }, rows, columns);
      check_refusal([&] { return functional::reduce_scatter(x, Sum{}, odd, world); }, rows,
                    columns);
      check_refusal([&] { return functional::all_to_all(x, odd, world); }, "along dimensions 0, 0",
                    "along dimensions 1, 1");
      check_refusal([&] { return functional::all_to_all(x, odd, 1 - odd, world); },
                    "along dimensions 0, 1", "along dimensions 1, 0");
      check_refusal([&] { return functional::all_to_all(x, ones, ones, odd, world); }, rows,
                    columns);
      check_refusal([&] { return functional::permute(x, odd ? back : there, world); },
                    "with pairs {0, 1}", "with pairs {1, 0}");
      check_refusal(
          [&] { return functional::all_gather_coalesced(std::tuple{x, x}, {odd, 1 - odd}, world); },
          "along dimensions 0, 1", "along dimensions 1, 0");
      check_refusal(
          [&] {
            return functional::reduce_scatter_coalesced(std::tuple{x, large}, Sum{}, {0, odd},
                                                        world);
          },
          rows, columns);
      CHECK(element(functional::all_gather(x, -1, world), 0, n) == 1);
      CHECK(element(functional::all_gather(x, 1, world), 0, n) == 1);
    }
    group.state().check = usual;
  });
}

TEST_CASE("errors show the compared arguments, long lists as a checksum") {
  using namespace cleave::detail;
  const auto text = [](CollectiveKind kind, const std::vector<int>& numbers) {
    return detail_to_string(kind, packed_detail(numbers));
  };
  const std::vector<int> most(15, 14), too_many(16, 0);
  CHECK(text(CollectiveKind::all_gather, {}) == "");
  CHECK(text(CollectiveKind::all_gather, {0}) == " along dimension 0");
  CHECK(text(CollectiveKind::all_gather, {7, 0, 3}) == " along dimensions 7, 0, 3");
  CHECK(text(CollectiveKind::exchange, {0, 14, 14, 0}) == " with pairs {0, 14}, {14, 0}");
  CHECK(contains(text(CollectiveKind::all_gather, most), " 14, 14"));
  CHECK(contains(text(CollectiveKind::all_gather, too_many), " with checksum "));
  CHECK(contains(text(CollectiveKind::exchange, {0, 15}), " with checksum "));
  CHECK(detail_to_string(CollectiveKind::all_gather, numbered_detail(1, 200)) ==
        " with numbers 1, 200");
  CHECK(packed_detail(std::vector<int>{0, 15}) != packed_detail(std::vector<int>{15, 0}));
}
