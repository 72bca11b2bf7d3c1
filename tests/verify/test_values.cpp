// Every operation in the list under placements of its operands, against naive loops.
#include <doctest/doctest.h>

#include "cases.hpp"
#include "effort.hpp"
#include "on_meshes.hpp"
#include "subject.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_CASE("every operation on one rank gives the results of naive loops, also into a target") {
  Verdict verdict;
  for (const Subject& subject : all_subjects()) verify_local(subject, verdict);
  CAPTURE(verdict.first);
  CHECK(verdict.calls > 200);
  CHECK(verdict.wrong == 0);
}

TEST_CASE("every operation gives the same under all placements of all operands") {
  const std::vector<Subject> subjects = all_subjects();
  Report report;
  on_ranks({1, 2, 3, 4, 6}, [&](World& world) {
    Verdict verdict;
    each_mesh(world, [&](const MeshState& mesh, int axes) {
      for (const Subject& subject : subjects) {
        // two ranks: all placements of pairs; otherwise an evenly spread sample
        const bool is_main = subject.types.back() == DType::float64;
        const bool is_small = mesh.size() == 2 || mesh.size() == 3;
        const std::size_t most = sampled(mesh.size() == 2 ? 150 : axes == 1 ? 21 : 45);
        if (is_main || (axes == 1 && mesh.size() < 4))
          verify_values(subject, mesh, most, !is_main || !is_small, verdict);
      }
    });
    report.add(world, verdict);
  });
  if (report.calls() == 0) return;  // too few processes: skipped
  report.print("(operation, extents, placements)");
  CAPTURE(report.first());
  CHECK(report.calls() > 1000);
  CHECK(report.wrong() == 0);
}

TEST_CASE("every operation gives the same however its operands are cut") {
  const std::vector<Subject> subjects = all_subjects();
  Report report;
  on_ranks({2, 4}, [&](World& world) {
    Verdict verdict;
    each_mesh(world, [&](const MeshState& mesh, int axes) {
      for (const Subject& subject : subjects)
        if (subject.types.back() == DType::float64 && (axes == 2 || mesh.size() == 2))
          verify_values(subject, mesh, sampled(axes == 2 ? 21 : 45), true, verdict, Choice::cuts);
    });
    report.add(world, verdict);
  });
  if (report.calls() == 0) return;  // too few processes: skipped
  report.print("(operation, extents, cuts)");
  CAPTURE(report.first());
  CHECK(report.calls() > 500);
  CHECK(report.wrong() == 0);
}

TEST_CASE("every row of partials is taken by some call") {
  if (sanitized) return skip("a property of values: plain builds check it");
  const std::vector<Subject> subjects = all_subjects();
  Report report;
  on_ranks({2}, [&](World& world) {
    Verdict verdict;
    each_mesh(world, [&](const MeshState& mesh, int) {
      for (const Subject& subject : subjects)
        if (subject.types.back() == DType::float64 && subject.has_new_rule)
          verify_values(subject, mesh, 1000, true, verdict);
    });
    report.add(world, verdict);
  });
  if (report.calls() == 0) return;  // too few processes: skipped
  std::size_t rows = 0;
  std::string unused;
  for (const Subject& subject : subjects) {
    std::vector<Shape> extents;
    const auto shapes = shapes_of(subject, true);
    for (const naive::Indices& shape : shapes[0]) extents.push_back(naive::shape_of(shape));
    if (subject.types.back() != DType::float64) continue;  // integers have no avg
    if (!subject.has_new_rule) continue;
    const spmd::Graph graph = subject.call(extents);
    if (graph.nodes.size() != 1 || graph.nodes[0].is_placement) continue;  // a composite
    const Rule* const rule = graph.nodes[0].op->rule;
    for (int r = 0; r < rule->rows; ++r, ++rows)
      if (!report.rows().contains({rule, r}))
        unused += "\nrow " + std::to_string(r) + " of " + subject.name;
  }
  CAPTURE(unused);
  CHECK(rows > 50);
  CHECK(unused.empty());
}
