#include "../naive/trigonometry.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_trigonometry(std::vector<Subject>& subjects) {
  ops::listing::each_registered<ops::topics::trigonometry>(
      [&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
