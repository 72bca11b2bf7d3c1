#include "../naive/activations.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_activations(std::vector<Subject>& subjects) {
  ops::listing::each_registered<ops::topics::activations>(
      [&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
