#include "../naive/rounding.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_rounding(std::vector<Subject>& subjects) {
  ops::listing::each_registered<ops::topics::rounding>(
      [&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
