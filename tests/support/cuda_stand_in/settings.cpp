#include "settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace cuda_stand_in {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

long number(const char* name, long otherwise) {
  const std::string_view value = variable(name);
  return value.empty() ? otherwise : std::strtol(value.data(), nullptr, 10);
}

}  // namespace

Settings Settings::from_environment() {
  Settings settings;
  settings.devices = int(std::clamp(number("CLEAVE_STAND_IN_DEVICES", 1), 0L, long(max_devices)));
  settings.peers = variable("CLEAVE_STAND_IN_PEERS") != "off";
  settings.memory = std::size_t(number("CLEAVE_STAND_IN_MEMORY_MB", 16384)) << 20;
  settings.timeout = std::chrono::seconds(number("CLEAVE_STAND_IN_TIMEOUT", 60));
  const std::string_view threads = variable("CLEAVE_STAND_IN_THREADS");
  if (threads == "reversed") settings.threads = ThreadOrder::reversed;
  if (threads == "shuffled") settings.threads = ThreadOrder::shuffled;
  return settings;
}

}  // namespace cuda_stand_in
