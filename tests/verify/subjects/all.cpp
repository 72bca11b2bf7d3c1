#include <set>
#include <string>

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects;
  for (const auto add :
       {add_arithmetic,    add_comparisons, add_functions,     add_powers,       add_trigonometry,
        add_activations,   add_rounding,    add_choices,       add_clamp_lerp,   add_reductions,
        add_products,      add_classes,     add_normalisation, add_losses,       add_shapes,
        add_random,        add_indices,     add_attention,     add_convolutions, add_transforms,
        add_linear_algebra})
    add(subjects);
  std::set<std::string> rules;
  for (Subject& subject : subjects)
    subject.has_new_rule = subject.rule.empty() || rules.insert(subject.rule).second;
  return subjects;
}

}  // namespace cleave::testing
