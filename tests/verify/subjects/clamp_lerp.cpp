#include "../naive/clamp_lerp.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_clamp_lerp(std::vector<Subject>& subjects) {
  ops::listing::each_clamp_lerp([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
