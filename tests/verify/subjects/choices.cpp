#include "../naive/choices.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_choices(std::vector<Subject>& subjects) {
  ops::listing::each_choice([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
