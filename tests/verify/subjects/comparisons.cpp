#include "../naive/comparisons.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_comparisons(std::vector<Subject>& subjects) {
  ops::listing::each_registered<ops::topics::comparisons>(
      [&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
