#include "../naive/linear_algebra.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_linear_algebra(std::vector<Subject>& subjects) {
  ops::listing::each_of_linear_algebra([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
