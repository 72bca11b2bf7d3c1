#include "../naive/classes.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_classes(std::vector<Subject>& subjects) {
  ops::listing::each_of_classes([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
