#include "../naive/shapes.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_shapes(std::vector<Subject>& subjects) {
  ops::listing::each_shape([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
