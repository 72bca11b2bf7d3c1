// Turns an access that hits protected device memory into a sentence, and then stops the program.
#pragma once

#include <cstddef>

namespace cuda_stand_in {

/// Watches a range of addresses from now on.
void guard_range(const void* begin, std::size_t bytes);

/// Whether device memory is out of the host's reach while no device code runs:
/// CLEAVE_STAND_IN_GUARD other than `off`. Costs time in proportion to the memory in use, at every
/// synchronisation.
bool guards();

/// Installs the handler of the signal, or installs it again where somebody else took it over.
void keep_guard();

/// While one lives, this thread runs device code or copies of the machine.
class DeviceCodeScope {
 public:
  DeviceCodeScope();
  ~DeviceCodeScope();
  DeviceCodeScope(const DeviceCodeScope&) = delete;
};

}  // namespace cuda_stand_in
