// The members of a functional collective, and the errors of ranks that are not members.
#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/functional.hpp>

#include "errors.hpp"
#include "members.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// The error of rank 1 in a world of 4 when it uses a group of these ranks.
std::string refusal(const std::vector<std::vector<int>>& lists) {
  const World world(dry_communicator(1, 4));
  return error_of([&] {
    (void)functional::all_reduce(Tensor<float, 1, TestDevice>({3}), Sum{},
                                 functional::Group(world, lists));
  });
}

}  // namespace

TEST_CASE("a group is a world, a communicator, a list of ranks or several lists") {
  on_ranks({4, 7}, [](World& world) {
    const int rank = world.rank();
    std::vector<int> all, backwards;
    for (int r = 0; r < world.size(); ++r) {
      all.push_back(r);
      backwards.insert(backwards.begin(), r);
    }
    CHECK(members(world, rank) == all);
    CHECK(members(world.communicator(), rank) == all);
    CHECK(members(world.shared_communicator(), rank) == all);
    CHECK(members({world, all}, rank) == all);
    CHECK(members({world, backwards}, rank) == backwards);
    if (rank == 0 || rank == 3) CHECK(members({world, {3, 0}}, rank) == std::vector{3, 0});
    if (rank < 4) {
      const std::vector<int> mine = rank % 2 ? std::vector{3, 1} : std::vector{0, 2};
      CHECK(members({world, {{0, 2}, {3, 1}}}, rank) == mine);
      CHECK(members({world.communicator(), {{0, 2}, {3, 1}}}, rank) == mine);
      CHECK(members({world, {{0}, {1}, {2}, {3}}}, rank) == std::vector{rank});
      CHECK(members({world, std::vector<std::vector<int>>{{0, 1, 2, 3}}}, rank) ==
            std::vector{0, 1, 2, 3});
    }
    // ranks in a list of a list refer to the outer list
    if (rank == 1 || rank == 2)
      CHECK(members({functional::Group(world, {1, 2}), {1, 0}}, rank) == std::vector{2, 1});
  });
}

TEST_CASE("the communicator of a list is made once") {
  on_ranks({2, 3, 4}, [](World& world) {
    std::vector<int> all;
    for (int r = 0; r < world.size(); ++r) all.push_back(r);
    const auto of = [&](const functional::Group& group) { return &group.communicator("test"); };
    CHECK(of({world, all}) == &world.communicator());
    if (world.rank() > 1) return;
    Communicator* const first = of({world, {1, 0}});
    CHECK(first != &world.communicator());
    CHECK(first == of({world, {1, 0}}));
    CHECK(first == of({world, {{1, 0}}}));
    CHECK(of({world, {{0}, {1}}}) != first);
    CHECK(first->label() == "{1, 0} of world");
  });
}

TEST_CASE("collectives of several groups run side by side") {
  on_ranks({4, 7}, [](World& world) {
    const int rank = world.rank();
    if (rank >= 4) return;
    const functional::Group rows(world, {{0, 1}, {2, 3}}), columns(world, {{0, 2}, {1, 3}});
    const auto x = Tensor<double, 1>({1}, {double(rank)}).to(TestDevice{});
    for (int i = 0; i < 20; ++i) {
      const auto along_row = functional::all_reduce(x, Sum{}, rows);
      const auto along_column = functional::all_reduce(x, Sum{}, columns);
      CHECK(along_column->item() == 2 + 2 * (rank % 2));
      CHECK(along_row->item() == 1 + 4 * (rank / 2));
    }
  });
}

TEST_CASE("an invalid group is an error that gives the reason") {
  CHECK(refusal({{0, 4}}) ==
        "functional::all_reduce: rank 4 of the list {0, 4} does not exist: group 'world' has 4 "
        "ranks [rank 1]");
  CHECK(refusal({{1, -1}}) ==
        "functional::all_reduce: rank -1 of the list {1, -1} does not exist: group 'world' has 4 "
        "ranks [rank 1]");
  CHECK(refusal({{0, 3, 3, 1}}) ==
        "functional::all_reduce: rank 3 is listed twice in {0, 3, 3, 1} [rank 1]");
  CHECK(refusal({{0, 1}, {1, 2}}) ==
        "functional::all_reduce: rank 1 is in two lists, {0, 1} and {1, 2} [rank 1]");
  CHECK(refusal({{0, 1}, {2}}) ==
        "functional::all_reduce: the lists {0, 1} and {2} have different lengths [rank 1]");
  CHECK(refusal({{0, 2}}) ==
        "functional::all_reduce: rank 1 is not in the list {0, 2}; only listed ranks may make this "
        "call [rank 1]");
  CHECK(refusal({{0}, {2}}) ==
        "functional::all_reduce: rank 1 is not in any of the 2 lists; only listed ranks may make "
        "this call [rank 1]");
  CHECK(refusal({}) ==
        "functional::all_reduce: rank 1 is not in any of the 0 lists; only listed ranks may make "
        "this call [rank 1]");
  CHECK(refusal({{}}) ==
        "functional::all_reduce: rank 1 is not in the list {}; only listed ranks may make this "
        "call [rank 1]");
  CHECK(refusal({{1, 0, 2, 3}}) == "");
  CHECK(error_of([] { functional::Group(std::shared_ptr<Communicator>()); }) ==
        "functional::Group: the communicator is null");
}

TEST_CASE("a group is checked on every rank before anything is communicated") {
  on_ranks({3, 4}, [](World& world) {
    const Tensor<float, 1, TestDevice> x({3});
    for (int i = 0; i < 3; ++i) {
      CHECK_THROWS_AS((void)functional::all_reduce(x, Sum{}, {world, {{0, 1}, {2}}}), Error);
      CHECK_THROWS_AS((void)functional::all_gather(x, 0, {world, {0, 0}}), Error);
    }
    world.barrier();
  });
}

TEST_CASE("long lists are cut in messages") {
  std::vector<int> list;
  for (int r = 0; r < 20; ++r) list.push_back(r);
  list.push_back(7);
  const World world(dry_communicator(0, 32));
  CHECK(error_of([&] { functional::Group(world, list).communicator("test"); }) ==
        "test: rank 7 is listed twice in {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, "
        "..} [rank 0]");
}
