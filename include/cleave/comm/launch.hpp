// How a program was started: how many ranks its user asked for, and whether an MPI launcher did.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string>

#include <cleave/comm/thread_world.hpp>
#include <cleave/core/error.hpp>

namespace cleave::detail {

/// More threads than this are taken for a mistake.
inline constexpr int max_thread_ranks = 4096;

/// @throws Error unless `text` is a whole number from 1 to `max_thread_ranks`
inline int parse_ranks(const char* text, const char* origin) {
  char* end = nullptr;
  const long ranks = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || ranks < 1 || ranks > max_thread_ranks)
    throw Error("run", std::string(origin) + " is '" + text + "'; use a whole number from 1 to " +
                           std::to_string(max_thread_ranks));
  return int(ranks);
}

/// `--ranks N` or `--ranks=N`, else CLEAVE_RANKS, else one rank per core.
/// @throws Error for a value that means nothing
inline int requested_ranks(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--ranks=", 8) == 0) return parse_ranks(argv[i] + 8, "--ranks");
    if (std::strcmp(argv[i], "--ranks") != 0) continue;
    if (i + 1 == argc) throw Error("run", "--ranks needs a number");
    return parse_ranks(argv[i + 1], "--ranks");
  }
  if (const char* text = std::getenv("CLEAVE_RANKS"); text != nullptr && *text != '\0')
    return parse_ranks(text, "CLEAVE_RANKS");
  return available_cores();
}

/// The processes that an MPI launcher (mpirun, mpiexec, srun) started together with this one:
/// 0 if none did, -1 if one did but does not say how many.
inline int launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"})
    if (const char* text = std::getenv(name); text != nullptr && std::atoi(text) > 0)
      return std::atoi(text);
  if (std::getenv("PMIX_RANK") == nullptr && std::getenv("PMI_RANK") == nullptr) return 0;
  const char* text = std::getenv("SLURM_STEP_NUM_TASKS");
  return text != nullptr && std::atoi(text) > 0 ? std::atoi(text) : -1;
}

}  // namespace cleave::detail
