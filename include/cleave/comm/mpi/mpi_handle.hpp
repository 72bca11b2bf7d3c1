// The thin layer over MPI's C interface: checked calls, communicators that free themselves, and
// memory that outlives messages which cannot be cancelled.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/mpi/header.hpp>
#include <cleave/core/error.hpp>

namespace cleave::inline v0::detail {

/// MPI's text for an error code: "MPI_ERR_COMM: invalid communicator".
inline std::string mpi_error_string(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
    return "MPI error " + std::to_string(code);
  return std::string(text, std::size_t(length));
}

/// @throws Error that names the call, if it did not succeed
inline void mpi_check(int code, const char* call) {
  if (code != MPI_SUCCESS) throw Error(call, mpi_error_string(code));
}

/// Whether MPI calls may be made: after MPI_Init and before MPI_Finalize.
inline bool mpi_is_running() noexcept {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0) MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

/// Memory that MPI may still touch, because a message could not be cancelled: it stays valid until
/// the process ends.
inline void keep_until_exit(std::shared_ptr<void> memory) {
  static std::mutex mutex;
  static std::vector<std::shared_ptr<void>> kept;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(memory));
}

/// A communicator that the library owns. Its errors are returned, not fatal.
class MpiComm {
 public:
  MpiComm() = default;
  /// Takes ownership of a communicator.
  explicit MpiComm(MPI_Comm comm) : comm_(comm) {
    if (comm_ == MPI_COMM_NULL) return;
    const int code = MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    if (code != MPI_SUCCESS) MPI_Comm_free(&comm_);
    mpi_check(code, "MPI_Comm_set_errhandler");
  }
  MpiComm(MpiComm&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  MpiComm& operator=(MpiComm&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  ~MpiComm() {
    if (comm_ != MPI_COMM_NULL && mpi_is_running()) MPI_Comm_free(&comm_);
  }

  /// The same ranks with their own message space.
  /// @collective every rank of `comm`
  static MpiComm duplicate(MPI_Comm comm) {
    MPI_Comm copy = MPI_COMM_NULL;
    mpi_check(MPI_Comm_dup(comm, &copy), "MPI_Comm_dup");
    return MpiComm(copy);
  }

  MPI_Comm get() const noexcept { return comm_; }

  /// Never frees the communicator: messages may be in flight that no rank will receive.
  void abandon() noexcept { comm_ = MPI_COMM_NULL; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace cleave::inline v0::detail
