#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/one_hot_rows_cuda.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::kernels;
using namespace cleave::testing;

namespace {

template <class I>
Placed<I> classes_at(const Place& place, I (*of)(index_t)) {
  HostArray<I> buffer(place.size);
  for (index_t i = 0; i < buffer.size; ++i) buffer[i] = of(i);
  return Placed<I>(place, std::move(buffer));
}

}  // namespace

TEST_CASE_TEMPLATE("every row has a one at its class, in the window of columns", T, float, half,
                   std::int8_t) {
  for (const std::vector<int>& order : {std::vector<int>{0, 1}, {1, 0}})
    for (index_t first = 0; first <= 5; ++first)
      for (index_t columns = 0; first + columns <= 5; ++columns) {
        const auto indices =
            classes_at<std::int64_t>(Place::of(shape({3, 200}), order, {0, 1}),
                                     [](index_t i) { return std::int64_t(i * 3 % 5); });
        const Placed<T> out(Place::of(shape({3, 200, columns})));
        one_hot_rows(On<Cuda>{}, indices.read(), columns, out.data(), {first, 5});
        const auto classes = indices.values();
        HostArray<T> expected(600 * columns);
        for (index_t i = 0; i < 600; ++i)
          for (index_t c = 0; c < columns; ++c)
            expected[i * columns + c] = classes[i] == first + c ? T(1) : T(0);
        CHECK(out.wrong(expected) == 0);
      }
}

TEST_CASE("an index that is not a class is reported by the next wait, once; its row is zero") {
  const auto indices = classes_at<std::int32_t>(Place::of(shape({2, 30}), {1, 0}), [](index_t i) {
    return i == 1 ? -4 : i == 8 || i == 58 ? 3 : std::int32_t(i % 3);
  });
  const Placed<double> out(Place::of(shape({2, 30, 3})));
  one_hot_rows(On<Cuda>{}, indices.read(), 3, out.data(), {0, 3, "classes"});
  const std::string text = reported();
  CHECK((text == "classes: index 3 is not in [0, 3)" ||
         text == "classes: index -4 is not in [0, 3)"));
  CHECK(reported().empty());
  const auto classes = indices.values();
  HostArray<double> expected(180);
  for (index_t i = 0; i < 60; ++i)
    for (index_t c = 0; c < 3; ++c) expected[i * 3 + c] = classes[i] == c ? 1 : 0;
  CHECK(out.wrong(expected) == 0);
}

TEST_CASE("no indices, no rows") {
  const Placed<std::int32_t> indices(Place::of(shape({0, 3})));
  one_hot_rows<std::int32_t, float>(On<Cuda>{}, indices.read(), 4, nullptr, {0, 4});
  CHECK(reported().empty());
}
