#include "../naive/transforms.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_transforms(std::vector<Subject>& subjects) {
  ops::listing::each_transform([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
