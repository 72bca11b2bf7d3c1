// The verifier detects operations with wrong rules or gradients.
#include <string>

#include <doctest/doctest.h>

#include "naive/arithmetic.hpp"
#include "naive/functions.hpp"
#include "naive/products.hpp"
#include "naive/reductions.hpp"
#include "on_meshes.hpp"
#include "slopes.hpp"
#include "subject.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

// relu of a sum is not the sum of relus
struct ReluOfAddends : ops::Relu {
  static constexpr const char* partials = "max->max; min->min; sum->sum";
};
// square decreases for negative numbers
struct SquareOfLargest : ops::Square {
  static constexpr const char* partials = "max->max";
};
// (x1 + x2)(w1 + w2) is not x1 w1 + x2 w2
struct MatmulOfAddends : ops::Matmul {
  static constexpr const char* partials = "sum,sum->sum";
};
// contributions of the ranks' parts of k must be summed
struct MatmulByMax : ops::Matmul {
  static constexpr ReduceOp reduction = ReduceOp::max;
};
// maxima must be reduced by maximum, not by sum
struct SumOfMaxima : ops::Reduce<Max, 2u> {
  static constexpr ReduceOp reduction = ReduceOp::sum;
};
// running sums along rows need whole rows
struct RunningSum {
  static constexpr const char* name = "running_sum";
  static constexpr const char* factors = "ij->ij";
  static void kernel(const auto&, const Task&, const auto& y, const auto& x) {
    for (index_t i = 0; i < x.extents[0]; ++i)
      for (index_t j = 0; j < x.extents[1]; ++j)
        y.data[i * y.strides[0] + j * y.strides[1]] =
            x.data[i * x.strides[0] + j * x.strides[1]] +
            (j > 0 ? y.data[i * y.strides[0] + (j - 1) * y.strides[1]] : 0);
  }
};
struct WholeRunningSum : RunningSum {
  static constexpr const char* replicated = "j";
  static constexpr const char* partials = "sum->sum";
};
// the derivative of tanh is 1 - y^2
struct TanhOfY : ops::Tanh {
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return mul(g, sub(1, y));
  }
};
// missing conjugate: correct for real numbers only
struct MulWithoutConj : ops::Mul {
  template <int I>
  static constexpr auto gradient(wrt<I>, const auto& g, const auto&, const auto& a, const auto& b) {
    if constexpr (I == 0) return mul(g, b);
    else return mul(g, a);
  }
};
// correct on one rank; the addends of a partial x are not the elements of x
struct SquareByAddends : ops::Square {
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    return mul(mul(g, call_op(ReluOfAddends{}, x)), 2);
  }
};

Naive running_sum() {
  return {[](const Arrays& x) {
    Numbers y(x[0].shape);
    for (index_t i = 0; i < y.shape[0]; ++i)
      for (index_t j = 0; j < y.shape[1]; ++j)
        y.at({i, j}) = x[0].at({i, j}) + (j > 0 ? y.at({i, j - 1}) : 0.0);
    return y;
  }};
}

template <class Op, int Operands, class T = double>
Subject planted(const char* name, const Naive& naive) {
  const auto call = [](const auto&... x) { return call_op(Op{}, x...); };
  if constexpr (Operands == 1)
    return subject_of<Op, 1>(name, Types<T>{}, ops::DimsOf<2>{}, call, naive);
  else return subject_of<Op, 2>(name, Types<T, T>{}, ops::DimsOf<2, 2>{}, call, naive);
}

/// The error that the verifier finds under placements.
std::string fault_of(const Subject& subject) {
  Report report;
  on_ranks({2, 3}, [&](World& world) {
    Verdict verdict;
    each_mesh(world, [&](const MeshState& mesh, int) {
      verify_values(subject, mesh, 600, false, verdict);
    });
    report.add(world, verdict);
  });
  return report.first();
}

}  // namespace

TEST_SUITE_BEGIN("threads only");

TEST_CASE("wrong rows of partials are detected") {
  CHECK(fault_of(planted<ReluOfAddends, 1>("relu", naive_of(ops::Relu{}))) != "");
  CHECK(fault_of(planted<SquareOfLargest, 1>("square", naive_of(ops::Square{}))) != "");
  CHECK(fault_of(planted<MatmulOfAddends, 2>("matmul", naive_of(ops::Matmul{}))) != "");
}

TEST_CASE("wrong factors and reductions are detected") {
  CHECK(fault_of(planted<MatmulByMax, 2>("matmul", naive_of(ops::Matmul{}))) != "");
  CHECK(fault_of(planted<SumOfMaxima, 1>("max", naive_of(ops::Reduce<Max, 2u>{}))) != "");
  CHECK(fault_of(planted<RunningSum, 1>("running_sum", running_sum())) != "");
  CHECK(fault_of(planted<WholeRunningSum, 1>("running_sum", running_sum())) == "");
}

TEST_CASE("wrong gradients are detected") {
  const auto fault = [](const Subject& subject) {
    Verdict verdict;
    verify_slopes(subject, verdict);
    CHECK(verdict.calls > 0);
    return verdict.first;
  };
  CHECK(fault(planted<ops::Tanh, 1>("tanh", naive_of(ops::Tanh{}))) == "");
  CHECK(fault(planted<TanhOfY, 1>("tanh", naive_of(ops::Tanh{}))) != "");
  CHECK(fault(planted<MulWithoutConj, 2>("mul", naive_of(ops::Mul{}))) == "");
  CHECK(fault(planted<MulWithoutConj, 2, std::complex<double>>("mul", naive_of(ops::Mul{}))) != "");
}

TEST_CASE("a gradient that is right on one rank only is detected") {
  const Subject subject = planted<SquareByAddends, 1>("square", naive_of(ops::Square{}));
  Report report;
  on_ranks({2}, [&](World& world) {
    Verdict verdict;
    each_mesh(world, [&](const MeshState& mesh, int) {
      verify_placed_gradients(subject, mesh, 600, false, verdict);
    });
    report.add(world, verdict);
  });
  CHECK(report.first() != "");
}

TEST_SUITE_END();
