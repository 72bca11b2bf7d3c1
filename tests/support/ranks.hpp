// Runs the body of a test case on groups of ranks.
//
//     TEST_CASE("an all-reduce leaves the sum on every rank") {
//       on_ranks({1, 2, 3, 4, 7}, [](World& world) { .. CHECK(..); .. });
//     }
//
// Started as it is, the body runs on that many threads, one count after the other. Under mpirun
// with n processes it runs on the counts of (n/2, n], so that launches of 1, 2 and 4 together
// visit every count up to 4 once; if there is none, on the largest count below; if all counts are
// too large, the case is skipped. Processes that a count leaves over wait.
//
// Checks may stand on any rank. An exception of any rank fails the case, and leaves no rank behind.
#pragma once

#include <initializer_list>
#include <type_traits>

#include <cleave/comm/world.hpp>

#include "cases.hpp"

namespace cleave::testing {

/// A reference to a callable that takes a World.
class RankBody {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, RankBody>)
  RankBody(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, World& world) {
          (*static_cast<std::remove_reference_t<F>*>(object))(world);
        }) {}

  void operator()(World& world) const { call_(object_, world); }

 private:
  void* object_;
  void (*call_)(void*, World&);
};

/// Runs `body(World&)` on each rank of worlds of the given sizes.
/// @throws what the first failing rank threw
void on_ranks(std::initializer_list<int> counts, const RankBody& body);

}  // namespace cleave::testing

using cleave::testing::on_ranks;
using cleave::testing::skip;
