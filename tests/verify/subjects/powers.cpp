#include "../naive/powers.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_powers(std::vector<Subject>& subjects) {
  ops::listing::each_registered<ops::topics::powers>(
      [&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
