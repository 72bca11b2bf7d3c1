#include "../naive/reductions.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_reductions(std::vector<Subject>& subjects) {
  ops::listing::each_reduction([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
