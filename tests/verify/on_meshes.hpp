// Runs a verification on meshes of one and two axes and reports the result.
#pragma once

#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>

#include <doctest/doctest.h>

#include <cleave/mesh/device_mesh.hpp>

#include "effort.hpp"
#include "processes.hpp"
#include "ranks.hpp"
#include "verify.hpp"

namespace cleave::testing {

/// Collects the verdicts of the ranks in this process. An error on any rank is an error.
class Report {
 public:
  void add(const World& world, const Verdict& verdict) {
    const bool counts = world.rank() == 0 || Processes::get().launched();
    const std::lock_guard lock(mutex_);
    if (counts) calls_ += verdict.calls, refused_ += verdict.refused;
    wrong_ += verdict.wrong;
    if (first_.empty()) first_ = verdict.first;
    rows_.insert(verdict.rows.begin(), verdict.rows.end());
  }
  index_t calls() const { return calls_; }
  index_t wrong() const { return wrong_; }
  const std::string& first() const { return first_; }
  const RowsUsed& rows() const { return rows_; }

  void print(const char* what) const {
    if (Processes::get().rank() == 0)
      std::printf(
          "verified: %lld %s, of which %lld refuse their placements as they should; "
          "%zu rows of partials used\n",
          static_cast<long long>(calls_), what, static_cast<long long>(refused_), rows_.size());
  }

 private:
  std::mutex mutex_;
  index_t calls_ = 0, refused_ = 0, wrong_ = 0;
  std::string first_;
  RowsUsed rows_;
};

/// The number of placements to verify: `most` in thorough runs, a third of it otherwise, a sixth
/// under a sanitizer, which looks at accesses, not at values.
inline std::size_t sampled(std::size_t most) {
  return thorough() ? most : most / (sanitized ? 6 : 3);
}

/// Calls verify(mesh, axes) for meshes of this world's ranks.
template <class F>
void each_mesh(World& world, const F& verify) {
  const index_t n = world.size();
  if (n < 6) verify(init_device_mesh<axes::dp>(world, {n}).state(), 1);
  if (n == 4) verify(init_device_mesh<axes::dp, axes::tp>(world, {2, 2}).state(), 2);
  if (n == 6) verify(init_device_mesh<axes::dp, axes::tp>(world, {3, 2}).state(), 2);
}

}  // namespace cleave::testing
