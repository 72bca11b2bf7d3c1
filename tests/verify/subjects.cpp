#include "subject.hpp"

namespace cleave::testing {

std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects;
  ops::each_operation([&](const auto& entry) { add_subjects(entry, subjects); });
  return subjects;
}

}  // namespace cleave::testing
