#include "../naive/products.hpp"

#include "../subject.hpp"
#include "subjects.hpp"

namespace cleave::testing {

void add_products(std::vector<Subject>& subjects) {
  ops::listing::each_product([&](const auto& entry) { add_subjects(entry, subjects); });
}

}  // namespace cleave::testing
