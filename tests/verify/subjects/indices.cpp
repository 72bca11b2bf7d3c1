#include "../naive/indices.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_indices(std::vector<Subject>& subjects) {
  ops::listing::each_of_indices([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
