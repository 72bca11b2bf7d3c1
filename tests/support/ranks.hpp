// Runs the body of a test case on groups of ranks.
//
//     TEST_CASE("an all-reduce leaves the sum on every rank") {
//       on_ranks({1, 2, 3, 4, 7}, [](World& world) { .. CHECK(..); .. });
//     }
//
// Without mpirun, the body runs on as many threads as each count says, one count after the other.
// Under mpirun with n processes it runs on the counts in (n/2, n], so that launches with 1, 2 and 4
// processes together run every count up to 4 once. If there is none, it runs on the largest smaller
// count; if all counts are too large, the case is skipped. Processes beyond the count wait.
//
// Checks may be made on any rank. An exception on any rank fails the case and leaves no rank
// hanging.
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
