// Settings of the stand-in from the environment.
#include <cstdlib>

#include <doctest/doctest.h>

#include "cuda_stand_in/settings.hpp"

using namespace cuda_stand_in;

TEST_CASE("the environment sets devices, memory and the order of threads") {
  const auto with = [](const char* name, const char* value) {
    setenv(name, value, 1);
    const Settings settings = Settings::from_environment();
    unsetenv(name);
    return settings;
  };
  CHECK(with("CLEAVE_STAND_IN_DEVICES", "3").devices == 3);
  CHECK(with("CLEAVE_STAND_IN_DEVICES", "0").devices == 0);
  CHECK(with("CLEAVE_STAND_IN_DEVICES", "1000").devices == max_devices);
  CHECK(with("CLEAVE_STAND_IN_MEMORY_MB", "64").memory == std::size_t(64) << 20);
  CHECK(with("CLEAVE_STAND_IN_THREADS", "reversed").threads == ThreadOrder::reversed);
  CHECK(with("CLEAVE_STAND_IN_THREADS", "shuffled").threads == ThreadOrder::shuffled);
}
