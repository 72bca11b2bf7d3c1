#include "../naive/blends.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_blends(std::vector<Subject>& subjects) {
  ops::listing::each_blend([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
