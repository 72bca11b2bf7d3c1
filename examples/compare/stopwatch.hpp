// The time of a program's work, for bench/compare: written to stderr by rank 0.
#pragma once

#include <chrono>
#include <cstdio>

class Stopwatch {
 public:
  void print(int rank) const {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    if (rank == 0) std::fprintf(stderr, "seconds %.6f\n", passed.count());
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};
