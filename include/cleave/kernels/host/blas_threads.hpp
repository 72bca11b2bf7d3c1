// How many threads OpenBLAS uses: the user's to say, except while ranks that are threads run. They
// are the parallelism then; they would queue for OpenBLAS' one pool while its workers spin on their
// cores.
#pragma once

#include <cstdlib>
#include <mutex>

/// Present in OpenBLAS only; null with any other BLAS, and without one.
extern "C" [[gnu::weak]] void openblas_set_num_threads(int threads);
extern "C" [[gnu::weak]] int openblas_get_num_threads();

namespace cleave::kernels {

/// While one of these lives, OpenBLAS uses one thread per call; the last one to go restores the
/// number from before. Nothing happens where the environment says how many it wants
/// (OPENBLAS_NUM_THREADS or OMP_NUM_THREADS), or without OpenBLAS.
class OneBlasThread {
 public:
  OneBlasThread() {
    const std::lock_guard lock(users().mutex);
    if (!counts_ || users().count++ > 0) return;
    users().before = openblas_get_num_threads();
    openblas_set_num_threads(1);
  }
  OneBlasThread(const OneBlasThread&) = delete;  // each is counted
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

}  // namespace cleave::kernels
