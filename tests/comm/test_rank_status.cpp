// When a rank stops waiting, and what it says, as a function of what the awaited ranks do; and the
// memory in which ranks state what they do.
#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/rank_status.hpp>
#include <cleave/comm/status_board.hpp>

using namespace cleave;
using State = detail::RankStatus::State;

namespace {

detail::PeerStatus peer(int rank, State state, const char* text = "", bool reached = false) {
  detail::PeerStatus result{rank, {state, reached, {}}};
  result.status.set_text(text);
  return result;
}

/// What rank 0 says that has waited in an all_gather, with a time-out of 300 s.
std::string after(double seconds, const std::vector<detail::PeerStatus>& peers) {
  static const std::string label = "world";
  const detail::RankWait wait{.world_rank = 0,
                              .operation = "all_gather",
                              .label = &label,
                              .site = {"heat.cpp", 41},
                              .timeout_seconds = 300};
  return detail::reason_to_stop(wait, seconds, peers);
}

constexpr const char* this_call = "all_gather of group 'world' at heat.cpp:41";

}  // namespace

TEST_CASE("a rank waits on before the time-out, whatever others do") {
  for (const State state : {State::silent, State::computes, State::waits})
    CHECK(after(300, {peer(1, state), peer(2, state, "", true)}) == "");
  CHECK(after(300, {peer(1, State::left, "", true)}) == "");  // it has done its part of the call
}

TEST_CASE("a rank that has failed or left is named at once") {
  CHECK(after(0, {peer(1, State::computes), peer(3, State::failed, "load: no such file")}) ==
        "rank 3 failed: load: no such file");
  CHECK(after(0, {peer(1, State::left), peer(2, State::computes), peer(3, State::left)}) ==
        "ranks 1, 3 left while rank 0 waits in all_gather of group 'world'");
  CHECK(after(0, {peer(1, State::left), peer(2, State::failed, "x")}) == "rank 2 failed: x");
}

TEST_CASE("after the time-out the ranks that do not wait are named, and what the others wait in") {
  const std::string late = " did not reach " + std::string(this_call) + " within 300 s";
  CHECK(after(301, {peer(1, State::computes)}) == "rank 1" + late);
  CHECK(after(301, {peer(1, State::silent), peer(2, State::computes)}) ==
        "ranks 1, 2" + late + "; rank 1 does not answer");
  CHECK(after(301, {peer(1, State::waits, "barrier of group 'tp'"), peer(2, State::computes)}) ==
        "rank 2" + late + "; rank 1 waits in barrier of group 'tp'");
  CHECK(after(301, {peer(1, State::waits, this_call, true), peer(2, State::computes)}) ==
        "rank 2" + late);
  CHECK(after(301, {peer(1, State::computes, "", true), peer(2, State::left, "", true),
                    peer(3, State::computes)}) == "rank 3" + late);
}

TEST_CASE("ranks that wait for each other are named a little later: another may know the culprit") {
  const std::vector<detail::PeerStatus> peers{peer(1, State::waits, "barrier of group 'a'"),
                                              peer(2, State::waits, "barrier of group 'b'")};
  CHECK(after(302, peers) == "");
  CHECK(after(302.1, peers) ==
        "ranks 1, 2 did not reach all_gather of group 'world' at heat.cpp:41 within 300 s; rank 1 "
        "waits in barrier of group 'a'; rank 2 waits in barrier of group 'b'");
}

TEST_CASE("a call that all ranks have begun has to end, too") {
  const std::vector<detail::PeerStatus> peers{peer(1, State::waits, this_call, true),
                                              peer(2, State::waits, "gather of group 'w'", true)};
  const double for_ever = std::numeric_limits<double>::infinity();
  CHECK(after(301, peers) == "");
  CHECK(after(for_ever, peers) == std::string(this_call) +
                                      " did not end within 300 s, although all ranks have reached "
                                      "it; rank 2 waits in gather of group 'w'");
  CHECK(after(for_ever, {}) == std::string(this_call) + " did not end within 300 s");
}

TEST_CASE("long texts are cut off") {
  detail::RankStatus status;
  status.set_text(std::string(5000, 'x'));
  CHECK(std::string(status.text.data()) == std::string(status.text.size() - 1, 'x'));
  const auto board = detail::StatusBoard::create(2);
  const detail::StatusBoard::Wait wait(*board, 1, std::string(5000, 'y'));
  CHECK(std::string(board->status_of(1).text.data()) == std::string(239, 'y'));
}

TEST_CASE("a board knows what each rank does, and which one was the first to fail") {
  const auto board = detail::StatusBoard::create(3);
  CHECK(board->status_of(1).state == State::computes);
  {
    const detail::StatusBoard::Wait one(*board, 1, "barrier");
    const detail::StatusBoard::Wait two(*board, 1, "gather"), three(*board, 1, "scatter");
    CHECK(board->status_of(1).state == State::waits);
    CHECK(std::string(board->status_of(1).text.data()) == "gather");  // of two threads at most
    CHECK(board->status_of(0).state == State::computes);
    CHECK(board->status_of(2).state == State::computes);
  }
  CHECK(board->status_of(1).state == State::computes);
  CHECK(board->leave(2));
  CHECK_FALSE(board->leave(2));
  CHECK(board->status_of(2).state == State::left);
  CHECK(board->failure().rank == -1);
  CHECK(board->fail(1, "broken"));
  CHECK_FALSE(board->fail(0, "broken, too"));
  CHECK(detail::to_string(board->failure()) == "rank 1 failed: broken");
}

TEST_CASE("whoever reads a text while it changes reads one of its values") {
  const auto board = detail::StatusBoard::create(1);
  const std::string as(200, 'a'), bs(150, 'b');
  std::atomic<bool> ended{false};
  std::thread writer([&] {
    for (bool first = true; !ended; first = !first)
      const detail::StatusBoard::Wait wait(*board, 0, first ? as : bs);
  });
  int wrong = 0;
  for (int seen = 0; seen < 3000;) {
    const std::string text = board->status_of(0).text.data();
    wrong += !text.empty() && text != as && text != bs;
    seen += !text.empty();
  }
  ended = true;
  writer.join();
  CHECK(wrong == 0);
}
