// SUNDIALS' vectors of DTensors: every function against loops over the global array, and CVODE,
// which takes the same steps and gives the same bits on any mesh.
#include <cmath>
#include <cstring>
#include <mutex>
#include <vector>

#include <cvode/cvode.h>
#include <doctest/doctest.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/interop/sundials.hpp>
#include <cleave/ops/stencil/apply.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace sundials_test {
namespace {

constexpr index_t n = 11;

struct Context {
  SUNContext value = nullptr;
  Context() { SUNContext_Create(nullptr, &value); }
  ~Context() { SUNContext_Free(&value); }
};

Tensor<double, 1> numbers(double (*f)(index_t)) {
  const Tensor<double, 1> x({n});
  for (index_t i = 0; i < n; ++i) x(i) = f(i);
  return x;
}

template <class X>
bool equals(N_Vector v, const std::vector<double>& expected) {
  const auto whole = sun::tensor<X>(v).full_tensor();
  for (index_t i = 0; i < n; ++i)
    if (whole(i) != expected[std::size_t(i)]) return false;
  return true;
}

template <class P>
void check_functions(World& world, P placement) {
  const auto mesh = init_device_mesh<axes::dp>(world, {world.size()});
  const auto a = numbers([](index_t i) { return i == 3 ? 0.0 : double(i * 7 % 11) - 4; });
  const auto b = numbers([](index_t i) { return double(i * 5 % 7) + 0.25; });
  const auto m = numbers([](index_t i) { return double(i % 2); });
  const auto x = distribute_tensor(a, mesh, placement);
  using X = std::remove_const_t<decltype(x)>;
  const Context context;
  const N_Vector vx = sun::nvector(x, context.value);
  const N_Vector vy = sun::nvector(distribute_tensor(b, mesh, placement), context.value);
  const N_Vector vm = sun::nvector(distribute_tensor(m, mesh, placement), context.value);
  const N_Vector vz = N_VClone(vx);
  CHECK(N_VGetArrayPointer(vx) == x.to_local().data());
  if (x.to_local().size() > 0) CHECK(N_VGetArrayPointer(vz) != N_VGetArrayPointer(vx));
  CHECK(N_VGetLength(vx) == n);

  const auto all = [&](auto f) {
    std::vector<double> values;
    for (index_t i = 0; i < n; ++i) values.push_back(f(a(i), b(i)));
    return values;
  };
  N_VLinearSum(2, vx, -3, vy, vz);
  CHECK(equals<X>(vz, all([](double p, double q) { return 2 * p + -3 * q; })));
  N_VConst(1.5, vz);
  CHECK(equals<X>(vz, all([](double, double) { return 1.5; })));
  N_VProd(vx, vy, vz);
  CHECK(equals<X>(vz, all([](double p, double q) { return p * q; })));
  N_VDiv(vx, vy, vz);
  CHECK(equals<X>(vz, all([](double p, double q) { return p / q; })));
  N_VScale(-2, vx, vz);
  CHECK(equals<X>(vz, all([](double p, double) { return -2 * p; })));
  N_VAbs(vx, vz);
  CHECK(equals<X>(vz, all([](double p, double) { return std::abs(p); })));
  N_VInv(vy, vz);
  CHECK(equals<X>(vz, all([](double, double q) { return 1 / q; })));
  N_VAddConst(vx, 3, vz);
  CHECK(equals<X>(vz, all([](double p, double) { return p + 3; })));
  N_VCompare(3, vx, vz);
  CHECK(equals<X>(vz, all([](double p, double) { return std::abs(p) >= 3 ? 1.0 : 0.0; })));

  double product = 0, squares = 0, masked = 0, total = 0, most = 0, least = 1e9, quotient = 1e9;
  for (index_t i = 0; i < n; ++i) {  // sums of small multiples of 1/16: without rounding
    product += a(i) * b(i);
    squares += a(i) * b(i) * a(i) * b(i);
    if (m(i) > 0) masked += a(i) * b(i) * a(i) * b(i);
    total += std::abs(a(i));
    most = std::max(most, std::abs(a(i)));
    least = std::min(least, a(i));
    if (a(i) != 0) quotient = std::min(quotient, b(i) / a(i));
  }
  CHECK(N_VDotProd(vx, vy) == product);
  CHECK(N_VWL2Norm(vx, vy) == std::sqrt(squares));
  CHECK(N_VWrmsNorm(vx, vy) == std::sqrt(squares / n));
  CHECK(N_VWrmsNormMask(vx, vy, vm) == std::sqrt(masked / n));
  CHECK(N_VL1Norm(vx) == total);
  CHECK(N_VMaxNorm(vx) == most);
  CHECK(N_VMin(vx) == least);
  CHECK(N_VMinQuotient(vy, vx) == quotient);

  CHECK(N_VInvTest(vy, vz) == SUNTRUE);
  CHECK(N_VInvTest(vx, vz) == SUNFALSE);  // element 3 is 0
  const N_Vector constraints = N_VClone(vx);
  N_VConst(2, constraints);  // all > 0
  CHECK(N_VConstrMask(constraints, vy, vz) == SUNTRUE);
  CHECK(N_VConstrMask(constraints, vx, vz) == SUNFALSE);
  CHECK(equals<X>(vz, all([](double p, double) { return p > 0 ? 0.0 : 1.0; })));
  N_VConst(-1, constraints);  // all <= 0
  CHECK(N_VConstrMask(constraints, vx, vz) == SUNFALSE);
  CHECK(equals<X>(vz, all([](double p, double) { return p <= 0 ? 0.0 : 1.0; })));
  for (const N_Vector v : {vx, vy, vm, vz, constraints}) N_VDestroy(v);
}

struct Laplacian : Stencil {
  constexpr auto operator()(const auto& u) const { return u(-1) - 2 * u(0) + u(1); }
};

struct Run {
  long steps = 0, evaluations = 0;
  std::vector<double> values{};
};

/// u' = (u(i-1) - 2 u(i) + u(i+1)) on a ring of 24 cells, by CVODE's Adams method, to t = 2.
template <class P>
Run integrate(World& world, P placement) {
  constexpr index_t cells = 24;
  const auto mesh = init_device_mesh<axes::dp>(world, {world.size()});
  const Tensor<double, 1> first({cells});
  for (index_t i = 0; i < cells; ++i) first(i) = 1 + std::sin(2 * M_PI * double(i) / cells);
  const auto u = distribute_tensor(first, mesh, placement);
  using Field = std::remove_const_t<decltype(u)>;
  const Context context;
  const N_Vector y = sun::nvector(u, context.value);
  void* const cvode = CVodeCreate(CV_ADAMS, context.value);
  const auto slope = [](double, N_Vector at, N_Vector to, void*) {
    apply(out(sun::tensor<Field>(to)), Laplacian{}, sun::tensor<Field>(at), edges(periodic));
    return 0;
  };
  REQUIRE(CVodeInit(cvode, slope, 0, y) == CV_SUCCESS);
  REQUIRE(CVodeSStolerances(cvode, 1e-8, 1e-10) == CV_SUCCESS);
  const SUNNonlinearSolver solver = SUNNonlinSol_FixedPoint(y, 0, context.value);
  REQUIRE(CVodeSetNonlinearSolver(cvode, solver) == CV_SUCCESS);
  double t = 0;
  REQUIRE(CVode(cvode, 2, y, &t, CV_NORMAL) == CV_SUCCESS);
  Run run;
  CVodeGetNumSteps(cvode, &run.steps);
  CVodeGetNumRhsEvals(cvode, &run.evaluations);
  const auto whole = u.full_tensor();  // y has the memory of u
  const double rate = 2 - 2 * std::cos(2 * M_PI / cells);
  for (index_t i = 0; i < cells; ++i) {
    const double exact = 1 + std::exp(-rate * t) * std::sin(2 * M_PI * double(i) / cells);
    CHECK(std::abs(whole(i) - exact) < 1e-6);
    run.values.push_back(whole(i));
  }
  N_VDestroy(y);
  SUNNonlinSolFree(solver);
  void* freed = cvode;
  CVodeFree(&freed);
  return run;
}

}  // namespace
}  // namespace sundials_test

TEST_CASE("functions of vectors are those of loops over the global array") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    sundials_test::check_functions(world, Shard<0>{});
    sundials_test::check_functions(world, BlockCyclic<0, 2>{});
    sundials_test::check_functions(world, Replicate{});
    sundials_test::check_functions(world, Owned<0, 0>{});
  });
}

TEST_CASE("CVODE takes the same steps and gives the same bits on any mesh") {
  std::mutex mutex;
  std::vector<sundials_test::Run> runs;
  on_ranks({1, 2, 3, 4}, [&](World& world) {
    const std::vector<sundials_test::Run> own{sundials_test::integrate(world, Shard<0>{}),
                                              sundials_test::integrate(world, Replicate{})};
    const std::lock_guard lock(mutex);
    runs.insert(runs.end(), own.begin(), own.end());
  });
  REQUIRE(runs.size() >= 2);
  CHECK(runs[0].steps > 10);
  for (const sundials_test::Run& run : runs) {
    CHECK(run.steps == runs[0].steps);
    CHECK(run.evaluations == runs[0].evaluations);
    CHECK(std::memcmp(run.values.data(), runs[0].values.data(),
                      run.values.size() * sizeof(double)) == 0);
  }
}

TEST_CASE("elements that are not contiguous are an error") {
  on_ranks({1}, [](World& world) {
    const auto mesh = init_device_mesh<axes::dp>(world, {1});
    const sundials_test::Context context;
    const auto x = from_local(Tensor<double, 2>({3, 4}).transpose(0, 1), mesh, Replicate{});
    CHECK(contains(error_of([&] { sun::nvector(x, context.value); }), "not contiguous"));
  });
}
