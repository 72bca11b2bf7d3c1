// The verifier: under all placements of its operands, an operation must compute what a naive
// function computes for the global arrays, and its gradient must equal the gradient on one rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <cleave/core/error.hpp>

#include "placed_values.hpp"
#include "subject.hpp"

namespace cleave::testing {

/// The number of checks, and the first error.
struct Verdict {
  index_t calls = 0;    ///< (operation, extents, placements)
  index_t refused = 0;  ///< calls that correctly threw: a sharded dimension cannot be broadcast
  index_t wrong = 0;
  std::string first{};
  RowsUsed rows{};

  void note(const std::string& fault, const std::function<std::string()>& about) {
    ++calls;
    if (fault.empty()) return;
    if (wrong++ == 0) first = about() + ": " + fault;
  }
};

/// Extents of the operands: uneven, smaller than the number of ranks, zero, and broadcast.
inline std::vector<std::vector<naive::Indices>> shapes_of(const Subject& subject, bool few_shapes) {
  std::vector<std::vector<index_t>> extents{{5, 3, 4}, {1, 7, 2}};
  if (!subject.naive.needs_elements) extents.push_back({0, 3, 2});
  if (!subject.naive.extents.empty()) extents = subject.naive.extents;
  if (few_shapes) extents.resize(1);
  std::vector<std::vector<naive::Indices>> result;
  const auto extent = [](const std::vector<index_t>& of, char letter) {
    return of[std::size_t(letter - 'a') % of.size()];
  };
  for (const auto& of : extents) {
    result.emplace_back();
    std::string seen;  // letters in the order of first appearance
    for (const std::string& letters : subject.letters) {
      naive::Indices shape;
      for (const char letter : letters) {
        if (seen.find(letter) == seen.npos) seen += letter;
        shape.push_back(extent(of, char('a' + int(seen.find(letter)))));
      }
      if (const int d = subject.naive.indexed; d >= 0 && result.back().empty())
        shape[std::size_t(d)] = std::max<index_t>(shape[std::size_t(d)], 4);
      result.back().push_back(shape);
    }
  }
  if (subject.broadcasts && subject.dims.size() > 1 && !few_shapes) {
    auto repeated = result[0];
    repeated.back()[0] = 1;
    result.push_back(repeated);
    repeated = result[0];
    repeated.front().back() = 1;
    result.push_back(repeated);
  }
  return result;
}

/// Whether an operand shards a dimension of extent 1, which is broadcast.
inline bool shards_repeated(const std::vector<naive::Indices>& shapes,
                            const std::vector<Layout>& layouts) {
  for (std::size_t i = 0; i < shapes.size(); ++i)
    for (int a = 0; a < layouts[i].axes; ++a)
      if (layouts[i][a].shards() && shapes[i][std::size_t(layouts[i][a].dim)] == 1) return true;
  return false;
}

/// The placements to test of an operand.
enum class Choice { shards_and_partials, cuts };

/// A subject on one mesh. Operands are made once per layout.
class OnMesh {
 public:
  OnMesh(const Subject& subject, const MeshState& mesh, std::vector<naive::Indices> shapes,
         Choice choice = Choice::shards_and_partials)
      : subject_(subject), mesh_(mesh), shapes_(std::move(shapes)), choice_(choice) {
    for (const naive::Indices& shape : shapes_) extents_.push_back(naive::shape_of(shape));
    graph_ = subject.call(extents_);
    for (const auto& [operand, program] : subject.gradient)
      gradients_.emplace_back(operand, program(extents_));
    if (subject.tape) tape_ = subject.tape(extents_);
  }

  /// Calls f(layouts) for combinations of placements: all, or about `most`, at least one, evenly
  /// spread.
  template <class F>
  void each_layouts(std::size_t most, const F& f) const {
    std::vector<std::vector<Layout>> choices;
    std::size_t count = 1;
    for (std::size_t i = 0; i < subject_.types.size(); ++i) {
      choices.push_back(
          choice_ == Choice::cuts
              ? layouts_of_cuts(shapes_[i], mesh_.extents())
              : naive::layouts_over(mesh_.extents().dims,
                                    placements_of(subject_.types[i], subject_.naive.domain_of(i),
                                                  subject_.dims[i])));
      count *= choices.back().size();
    }
    std::size_t step = count <= most ? 1 : count / std::max<std::size_t>(most, 1);
    const auto skips = [&](const auto& choice) { return std::gcd(step, choice.size()) > 1; };
    while (step > 1 && std::ranges::any_of(choices, skips)) ++step;  // all placements must occur
    for (std::size_t n = 0; n < count; n += step) {
      std::vector<Layout> layouts;
      std::size_t rest = n;
      for (const auto& choice : choices) {
        layouts.push_back(choice[rest % choice.size()]);
        rest /= choice.size();
      }
      f(layouts);
    }
  }

  /// Checks the call under these placements against the naive function.
  /// @collective every rank of the mesh
  void check_values(const std::vector<Layout>& layouts, Verdict& verdict) {
    std::string fault;
    try {
      const Numbers expected = subject_.naive.result(globals(layouts));
      const std::vector<Held> found = GraphRun(graph_, &mesh_, &verdict.rows)(held(layouts));
      fault = difference(found[0], expected, mesh_, tolerance_of(found[0].dtype));
    } catch (const Error& error) {
      if (may_refuse(error, layouts)) ++verdict.refused;
      else fault = error.what();
    }
    verdict.note(fault, [&] { return about(layouts); });
  }

  /// Checks the gradients under these placements against those of the global arrays on one rank.
  /// @collective every rank of the mesh
  void check_gradients(const std::vector<Layout>& layouts, Verdict& verdict) {
    std::vector<Held> y;
    try {
      y = GraphRun(graph_, &mesh_)(held(layouts));
    } catch (const Error& error) {
      if (!may_refuse(error, layouts)) verdict.note(error.what(), [&] { return about(layouts); });
      return;
    }
    const Layout g_layout = y[0].layout.with_partials_as(Placement::replicate());
    Numbers g(naive::to_indices(y[0].shape));
    for (std::size_t n = 0; n < g.values.size(); ++n)
      g.values[n] = rounded(y[0].dtype, Number64(double(n % 5) - 2, double(n % 3) - 1));
    const Arrays whole = globals(layouts);
    std::vector<Held> local;
    for (int i = 0; i < subject_.operands; ++i)
      local.push_back(local_of(subject_.types[std::size_t(i)], whole[std::size_t(i)]));
    std::vector<Held> every = local;
    for (std::size_t i = local.size(); i < whole.size(); ++i)
      every.push_back(local_of(subject_.types[i], whole[i]));
    std::vector<Held> alone{local_of(y[0].dtype, g), GraphRun(graph_, nullptr)(every)[0]};
    alone.insert(alone.end(), local.begin(), local.end());
    std::vector<Held> there{scattered(y[0].dtype, g, g_layout, mesh_), y[0]};
    const std::vector<Held> operands = held(layouts);
    there.insert(there.end(), operands.begin(), operands.begin() + subject_.operands);
    for (const auto& [operand, graph] : gradients_) {
      std::string fault;
      try {
        const Held expected = GraphRun(graph, nullptr)(alone)[0];
        Numbers numbers(naive::to_indices(expected.shape));
        numbers.values = local_elements(expected);
        fault = difference(GraphRun(graph, &mesh_, &verdict.rows)(there)[0], numbers, mesh_, 1e-9);
      } catch (const Error& error) {
        if (may_refuse(error, layouts)) ++verdict.refused;
        else fault = error.what();
      }
      verdict.note(fault, [&, at = operand] {
        return "the gradient of operand " + std::to_string(at) + " of " + about(layouts);
      });
    }
    check_tape(layouts, there[0], alone[0], every, verdict);
  }

 private:
  /// Checks `backward` against `backward` on one rank; gradients have the placements of their
  /// operands.
  /// @param g,local_g  the gradient of the result, placed and whole
  void check_tape(const std::vector<Layout>& layouts, const Held& g, const Held& local_g,
                  const std::vector<Held>& whole, Verdict& verdict) {
    std::string fault;
    try {
      std::vector<Held> alone{local_g}, there{g};
      alone.insert(alone.end(), whole.begin(), whole.end());
      for (const Held& x : held(layouts)) there.push_back(x);
      const std::vector<Held> expected = GraphRun(tape_, nullptr)(alone);
      const std::vector<Held> found = GraphRun(tape_, &mesh_)(there);
      for (std::size_t k = 0; k < found.size(); ++k) {
        const Layout& of = layouts[std::size_t(gradients_[k].first)];
        if (!(found[k].layout == of.with_partials_as(Placement::replicate())))
          fault = "a gradient lies " + to_string(found[k].layout);
        Numbers numbers(naive::to_indices(expected[k].shape));
        numbers.values = local_elements(expected[k]);
        const std::string wrong = difference(found[k], numbers, mesh_, 1e-9);
        if (fault.empty()) fault = wrong;
      }
    } catch (const Error& error) {
      if (may_refuse(error, layouts)) ++verdict.refused;
      else fault = error.what();
    }
    verdict.note(fault, [&] { return "backward of " + about(layouts); });
  }

  Placed& operand(std::size_t i, const Layout& layout) {
    auto& slot = placed_[{i, layout.packed()}];
    if (slot.held.storage == nullptr)
      slot =
          placed(subject_.types[i], subject_.naive.domain_of(i), layout, shapes_[i], mesh_, int(i));
    return slot;
  }
  std::vector<Held> held(const std::vector<Layout>& layouts) {
    std::vector<Held> result;
    for (std::size_t i = 0; i < layouts.size(); ++i) result.push_back(operand(i, layouts[i]).held);
    return result;
  }
  Arrays globals(const std::vector<Layout>& layouts) {
    Arrays result;
    for (std::size_t i = 0; i < layouts.size(); ++i)
      result.push_back(operand(i, layouts[i]).global);
    return result;
  }

  bool may_refuse(const Error& error, const std::vector<Layout>& layouts) const {
    return subject_.broadcasts && shards_repeated(shapes_, layouts) &&
           std::string(error.what()).find("has extent 1 and broadcasts") != std::string::npos;
  }

  std::string about(const std::vector<Layout>& layouts) const {
    std::string text = subject_.name + " on " + mesh_.describe();
    for (std::size_t i = 0; i < layouts.size(); ++i)
      text += (i > 0 ? " and " : ", ") + to_string(extents_[i]) + " " + to_string(layouts[i]);
    return text;
  }

  const Subject& subject_;
  const MeshState& mesh_;
  std::vector<naive::Indices> shapes_;
  Choice choice_;
  std::vector<Shape> extents_{};
  spmd::Graph graph_{};
  std::vector<std::pair<int, spmd::Graph>> gradients_{};
  spmd::Graph tape_{};
  std::map<std::pair<std::size_t, std::uint64_t>, Placed> placed_{};
};

/// Checks the call on local tensors, and the one that writes to a target, against the naive
/// function.
inline void verify_local(const Subject& subject, Verdict& verdict) {
  for (const auto& shapes : shapes_of(subject, false)) {
    Arrays global;
    std::vector<Held> inputs;
    std::vector<Shape> extents;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      Numbers x(shapes[i]);
      for (const naive::Indices& index : naive::all_indices(shapes[i]))
        x.at(index) = addend(subject.types[i], subject.naive.domain_of(i), {}, index, {}, int(i));
      inputs.push_back(local_of(subject.types[i], x));
      extents.push_back(inputs.back().shape);
      global.push_back(x);
    }
    const Numbers expected = subject.naive.result(global);
    const spmd::Graph graph = subject.call(extents);
    const auto check = [&](const Held& found, const char* form) {
      std::string fault;
      const std::vector<Number64> values = local_elements(found);
      if (naive::to_indices(found.shape) != expected.shape) fault = "the result has other extents";
      for (std::size_t i = 0; fault.empty() && i < values.size(); ++i)
        if (!close(values[i], rounded(found.dtype, expected.values[i]), tolerance_of(found.dtype)))
          fault = "element " + std::to_string(i) + " is " + std::to_string(values[i].real()) +
                  ", not " + std::to_string(expected.values[i].real());
      verdict.note(fault, [&] { return subject.name + form + to_string(extents[0]); });
    };
    check(GraphRun(graph, nullptr)(inputs)[0], " on one rank, ");
    if (subject.into) check(subject.into(graph, inputs), " into a target, ");
  }
}

/// Verifies a subject on a mesh under `most` placements, or fewer if another subject has the same
/// rule, because placements follow from rules alone.
///
/// @collective every rank of the mesh
inline void verify_values(const Subject& subject, const MeshState& mesh, std::size_t most,
                          bool few_shapes, Verdict& verdict,
                          Choice choice = Choice::shards_and_partials) {
  if (!subject.has_new_rule) most /= 5, few_shapes = true;
  for (const auto& shapes : shapes_of(subject, few_shapes)) {
    OnMesh on(subject, mesh, shapes, choice);
    on.each_layouts(most, [&](const auto& layouts) { on.check_values(layouts, verdict); });
  }
}
inline void verify_placed_gradients(const Subject& subject, const MeshState& mesh, std::size_t most,
                                    bool few_shapes, Verdict& verdict,
                                    Choice choice = Choice::shards_and_partials) {
  if (subject.gradient.empty()) return;
  if (!subject.has_new_rule) most /= 5, few_shapes = true;
  for (const auto& shapes : shapes_of(subject, few_shapes)) {
    OnMesh on(subject, mesh, shapes, choice);
    on.each_layouts(most, [&](const auto& layouts) { on.check_gradients(layouts, verdict); });
  }
}

}  // namespace cleave::testing
