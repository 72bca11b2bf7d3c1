// One function per topic of operations, each in its own source file.
#pragma once

#include <vector>

namespace cleave::testing {

struct Subject;

void add_activations(std::vector<Subject>&);
void add_arithmetic(std::vector<Subject>&);
void add_attention(std::vector<Subject>&);
void add_clamp_lerp(std::vector<Subject>&);
void add_choices(std::vector<Subject>&);
void add_classes(std::vector<Subject>&);
void add_comparisons(std::vector<Subject>&);
void add_convolutions(std::vector<Subject>&);
void add_functions(std::vector<Subject>&);
void add_indices(std::vector<Subject>&);
void add_linear_algebra(std::vector<Subject>&);
void add_losses(std::vector<Subject>&);
void add_normalisation(std::vector<Subject>&);
void add_powers(std::vector<Subject>&);
void add_products(std::vector<Subject>&);
void add_random(std::vector<Subject>&);
void add_reductions(std::vector<Subject>&);
void add_rounding(std::vector<Subject>&);
void add_shapes(std::vector<Subject>&);
void add_transforms(std::vector<Subject>&);
void add_trigonometry(std::vector<Subject>&);

}  // namespace cleave::testing
