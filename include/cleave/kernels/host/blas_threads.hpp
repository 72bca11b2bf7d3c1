// The number of OpenBLAS threads: the user's choice, except while ranks run as threads. The ranks
// are the parallelism then; otherwise they would queue for OpenBLAS' single thread pool, while its
// workers spin on the cores of the ranks.
#pragma once

#include <cstdlib>
#include <mutex>

/// Defined by OpenBLAS only; null with any other BLAS or none.
extern "C" [[gnu::weak]] void openblas_set_num_threads(int threads);
extern "C" [[gnu::weak]] int openblas_get_num_threads();

namespace cleave::inline v0::kernels {

/// While an object of this class exists, OpenBLAS uses one thread per call; the last destructor
/// restores the previous number. Has no effect without OpenBLAS, or if the environment sets
/// OPENBLAS_NUM_THREADS or OMP_NUM_THREADS.
class OneBlasThread {
 public:
  OneBlasThread() {
    const std::lock_guard lock(users().mutex);
    if (!counts_ || users().count++ > 0) return;
    users().before = openblas_get_num_threads();
    openblas_set_num_threads(1);
  }
  OneBlasThread(const OneBlasThread&) = delete;  // objects are counted
  OneBlasThread& operator=(const OneBlasThread&) = delete;
  ~OneBlasThread() {
    const std::lock_guard lock(users().mutex);
    if (counts_ && --users().count == 0) openblas_set_num_threads(users().before);
  }

 private:
  struct Users {
    std::mutex mutex;
    int count = 0;
    int before = 0;
  };
  static Users& users() {
    static Users all;
    return all;
  }

  const bool counts_ = std::getenv("OPENBLAS_NUM_THREADS") == nullptr &&
                       std::getenv("OMP_NUM_THREADS") == nullptr &&
                       &openblas_set_num_threads != nullptr && &openblas_get_num_threads != nullptr;
};

}  // namespace cleave::inline v0::kernels
