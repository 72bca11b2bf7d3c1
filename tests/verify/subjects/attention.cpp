#include "../naive/attention.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_attention(std::vector<Subject>& subjects) {
  ops::listing::each_of_attention([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
