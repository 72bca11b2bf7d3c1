#include "../naive/functions.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_functions(std::vector<Subject>& subjects) {
  ops::listing::each_function([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
