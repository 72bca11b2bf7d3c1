#include <cstdint>

#include <doctest/doctest.h>

#include <cleave/kernels/host/one_hot_rows.hpp>

using namespace cleave;
using namespace cleave::kernels;

TEST_CASE("every row has a one at its class, in the window of columns that is asked for") {
  const Tensor<std::int64_t, 2> classes({2, 3}, {0, 4, 2, 3, 1, 4});
  for (const auto& indices : {classes, classes.transpose(0, 1).clone().transpose(0, 1)}) {
    for (index_t first = 0; first <= 5; ++first) {
      for (index_t columns = 0; first + columns <= 5; ++columns) {
        Tensor<float, 3> out({2, 3, columns});
        out.fill_(9.0f);
        CHECK(!one_hot_rows(On<Host>{}, read(indices), columns, out.data(), {first, 5}));
        index_t wrong = 0;
        for (index_t i = 0; i < 2; ++i)
          for (index_t j = 0; j < 3; ++j)
            for (index_t c = 0; c < columns; ++c)
              wrong += out(i, j, c) != (classes(i, j) == first + c ? 1.0f : 0.0f);
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("an index that is not a class is reported; its row is zero") {
  const Tensor<std::int32_t, 1> indices({4}, {0, 3, -1, 2});
  Tensor<double, 2> out({4, 3});
  CHECK(one_hot_rows(On<Host>{}, read(indices), 3, out.data(), {0, 3}) == 3);
  CHECK(out(1, 0) + out(1, 1) + out(1, 2) == 0.0);
  CHECK(out(3, 2) == 1.0);
}
