// Every gradient in the list, against central differences and under placements.
#include <doctest/doctest.h>

#include "on_meshes.hpp"
#include "slopes.hpp"
#include "subject.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_CASE("every gradient is the slope of its operation") {
  Verdict verdict;
  for (const Subject& subject : all_subjects()) verify_slopes(subject, verdict);
  CAPTURE(verdict.first);
  CHECK(verdict.calls > 100);
  CHECK(verdict.wrong == 0);
}

TEST_CASE("every gradient under placements is the one of a single rank") {
  const std::vector<Subject> subjects = all_subjects();
  Report report;
  on_ranks({2, 3, 4}, [&](World& world) {
    Verdict verdict;
    each_mesh(world, [&](const MeshState& mesh, int axes) {
      for (const Subject& subject : subjects)
        verify_placed_gradients(subject, mesh, sampled(axes == 1 && world.size() == 2 ? 75 : 21),
                                world.size() > 2, verdict);
    });
    report.add(world, verdict);
  });
  if (report.calls() == 0) return;  // too few processes: skipped
  report.print("(gradient, extents, placements)");
  CAPTURE(report.first());
  CHECK(report.calls() > 1000);
  CHECK(report.wrong() == 0);
}

TEST_CASE("every gradient is that of a single rank however operands are cut") {
  const std::vector<Subject> subjects = all_subjects();
  Report report;
  on_ranks({2}, [&](World& world) {
    Verdict verdict;
    each_mesh(world, [&](const MeshState& mesh, int) {
      for (const Subject& subject : subjects)
        verify_placed_gradients(subject, mesh, sampled(15), true, verdict, Choice::cuts);
    });
    report.add(world, verdict);
  });
  if (report.calls() == 0) return;  // too few processes: skipped
  report.print("(gradient, extents, cuts)");
  CAPTURE(report.first());
  CHECK(report.calls() > 500);
  CHECK(report.wrong() == 0);
}

TEST_CASE("an operation without a gradient gives the reason") {
  for (const Subject& subject : all_subjects()) {
    if (!subject.is_first) continue;
    CAPTURE(subject.name);
    const bool gives_a_reason = !subject.reason.empty();
    CHECK(gives_a_reason == (subject.constants > 0));
  }
}
