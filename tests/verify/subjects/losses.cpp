#include "../naive/losses.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_losses(std::vector<Subject>& subjects) {
  ops::listing::each_loss([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
