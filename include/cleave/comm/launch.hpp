// How a program was started: the number of ranks requested, and whether by an MPI launcher.
#pragma once

#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <string>

#include <cleave/core/cores.hpp>
#include <cleave/core/error.hpp>

namespace cleave::inline v0::detail {

/// More threads than this are assumed to be a mistake.
inline constexpr int max_thread_ranks = 4096;

/// @throws Error unless `text` is an integer from 1 to `max_thread_ranks`
inline int parse_ranks(const char* text, const char* origin) {
  char* end = nullptr;
  const long ranks = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || ranks < 1 || ranks > max_thread_ranks)
    throw Error("run", std::string(origin) + " is '" + text + "'; use an integer from 1 to " +
                           std::to_string(max_thread_ranks));
  return int(ranks);
}

/// The text of an exception.
inline std::string to_string(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

/// The value of an option: `--name value`, `--name=value`; null if it is not there.
/// @throws Error if the value is missing
inline const char* option_value(int argc, char** argv, const std::string& name) {
  for (int i = 1; i < argc; ++i) {
    const std::size_t length = name.size();
    if (std::strncmp(argv[i], name.c_str(), length) != 0) continue;
    if (argv[i][length] == '=') return argv[i] + length + 1;
    if (argv[i][length] != '\0') continue;
    if (i + 1 == argc) throw Error("run", name + " requires a value");
    return argv[i + 1];
  }
  return nullptr;
}

/// The value of an environment variable; null if it is not set, or empty.
inline const char* setting(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

/// `--ranks N` or `--ranks=N`, else CLEAVE_RANKS, else one rank per core.
/// @throws Error for an invalid value
inline int requested_ranks(int argc, char** argv) {
  if (const char* text = option_value(argc, argv, "--ranks")) return parse_ranks(text, "--ranks");
  if (const char* text = setting("CLEAVE_RANKS")) return parse_ranks(text, "CLEAVE_RANKS");
  return available_cores();
}

/// `--device NAME` or `--device=NAME`, else CLEAVE_DEVICE, else the first device that the program
/// is compiled for: its index in `names`.
/// @throws Error for a device that the program is not compiled for
inline std::size_t requested_device(int argc, char** argv, std::span<const char* const> names) {
  const char* text = option_value(argc, argv, "--device");
  if (text == nullptr) text = setting("CLEAVE_DEVICE");
  if (text == nullptr) return 0;
  std::string known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::strcmp(text, names[i]) == 0) return i;
    known += (i > 0 ? ", " : "") + std::string(names[i]);
  }
  throw Error("run", std::string("this program is not compiled for the device '") + text +
                         "'; it knows: " + known);
}

/// The number of processes that an MPI launcher (mpirun, mpiexec, srun) started, this one included:
/// 0 if none did, -1 if one did but the number is not known.
inline int launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"})
    if (const char* text = std::getenv(name); text != nullptr && std::atoi(text) > 0)
      return std::atoi(text);
  if (std::getenv("PMIX_RANK") == nullptr && std::getenv("PMI_RANK") == nullptr) return 0;
  const char* text = std::getenv("SLURM_STEP_NUM_TASKS");
  return text != nullptr && std::atoi(text) > 0 ? std::atoi(text) : -1;
}

}  // namespace cleave::inline v0::detail
