#include "../naive/powers.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_powers(std::vector<Subject>& subjects) {
  ops::listing::each_power([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
