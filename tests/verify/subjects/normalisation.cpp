#include "../naive/normalisation.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_normalisation(std::vector<Subject>& subjects) {
  ops::listing::each_normalisation([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
