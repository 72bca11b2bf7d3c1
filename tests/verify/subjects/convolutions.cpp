#include "../naive/convolutions.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_convolutions(std::vector<Subject>& subjects) {
  ops::listing::each_convolution([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
