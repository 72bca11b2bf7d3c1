// What goes into a std::ostream of values that are traced or track gradients.
#include <sstream>

#include <doctest/doctest.h>

#include <cleave/grad.hpp>
#include <cleave/spmd.hpp>

using namespace cleave;

TEST_SUITE_BEGIN("threads only");

TEST_CASE("a tracked value goes into a stream as its value, a traced one as its number and type") {
  std::ostringstream out;
  out << requires_grad(Tensor<double, 1>({2}, {1, 2})) << "\n";
  spmd::trace(
      [&](const auto& x) {
        out << x << "\n" << requires_grad(square(x));
        return x;
      },
      spmd::arg<float>("x", {4, 0}));
  CHECK(out.str() == "[1., 2.]\n%0: f32[4, 0]\n%1: f32[4, 0]");
}

TEST_SUITE_END();
