#include "../naive/random.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_random(std::vector<Subject>& subjects) {
  ops::listing::each_random([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
