#include "../naive/arithmetic.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_arithmetic(std::vector<Subject>& subjects) {
  ops::listing::each_arithmetic([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
