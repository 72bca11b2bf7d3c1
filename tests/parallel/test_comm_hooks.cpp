// Hooks that send fewer than all elements: the contents of a bucket after each step, compared with
// naive loops over the addends of all ranks; and training with these hooks.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/parallel.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

constexpr index_t matrix_rows = 6, matrix_columns = 5, vector_size = 3;
constexpr index_t matrix_size = matrix_rows * matrix_columns, size = matrix_size + vector_size;

/// Element i of a rank's addend in a step.
using Addend = std::function<double(int rank, int step, index_t i)>;

double noise(int rank, int step, index_t i) {
  return std::sin(double(7 * i + 13 * rank + 29 * step + 1) * 1.7) + 0.1 * double(i % 4);
}

double sum_of(const Addend& addend, int ranks, int step, index_t i) {
  double sum = 0;
  for (int r = 0; r < ranks; ++r) sum += addend(r, step, i);
  return sum;
}

/// A bucket with a matrix and a vector.
template <class T>
struct Sent {
  Communicator& group;
  CommHook hook;
  std::vector<BucketPart> parts{
      {3, "w", Shape(std::array<index_t, 2>{matrix_rows, matrix_columns}), 0},
      {1, "b", Shape(std::array<index_t, 1>{vector_size}), matrix_size}};

  std::vector<double> step(int number, const Addend& addend) {
    const Tensor<T, 1> elements({size});
    for (index_t i = 0; i < size; ++i)
      elements(i) = T(accumulator_t<T>(addend(group.rank(), number, i)));
    hook(GradientBucket(Host{}, 0, elements.view(), parts, group, "world", 0));
    std::vector<double> result;
    for (index_t i = 0; i < size; ++i) result.push_back(double(elements(i)));
    return result;
  }
};

}  // namespace

TEST_CASE("compressed sums are those of rounded addends") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto check = [&]<class T, class Short>(T, Short) {
      Sent<T> sent{world.communicator(), CompressedAllReduce<Short>{}};
      CommTrace trace(world);
      const auto got = sent.step(0, noise);
      CHECK(trace.events().front().dtype == dtype_of<Short>());
      for (index_t i = 0; i < size; ++i) {
        float sum = 0;
        for (int r = 0; r < world.size(); ++r) sum += float(Short(float(noise(r, 0, i))));
        CHECK(got[std::size_t(i)] == double(float(Short(sum))));
      }
    };
    check(0.0, bfloat16{});
    check(0.f, half{});
    check(bfloat16{}, bfloat16{});
  });
}

TEST_CASE("top-k sends each rank's largest, and the others as soon as they are") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto check = [&]<class T>(T, double tolerance) {
      Sent<T> sent{world.communicator(), TopK(0.2)};
      const std::size_t k = 7;  // of 33
      std::vector<std::vector<double>> left(std::size_t(world.size()), std::vector<double>(size));
      for (int step = 0; step < 5; ++step) {
        std::vector<double> expected(size, 0);
        for (int r = 0; r < world.size(); ++r) {
          auto& mine = left[std::size_t(r)];
          for (index_t i = 0; i < size; ++i) mine[std::size_t(i)] += noise(r, step, i);
          for (std::size_t n = 0; n < k; ++n) {
            const auto at = std::max_element(mine.begin(), mine.end(), [](double a, double b) {
              return std::abs(a) < std::abs(b);
            });
            expected[std::size_t(at - mine.begin())] += *at;
            *at = 0;
          }
        }
        const auto got = sent.step(step, noise);
        for (std::size_t i = 0; i < size; ++i) CHECK(std::abs(got[i] - expected[i]) <= tolerance);
      }
    };
    check(0.0, 1e-12);
    check(0.f, 1e-5);
  });
}

TEST_CASE("PowerSGD: exact for sums of its rank, plain for vectors and for the first steps") {
  on_ranks({1, 2, 3}, [](World& world) {
    // addends of full rank, whose sum has rank 2
    const Addend addend = [&](int rank, int step, index_t i) {
      if (i >= matrix_size) return noise(rank, step, i);
      const double row = double(i / matrix_columns), column = double(i % matrix_columns);
      const double part = std::sin(row + step) * std::cos(column) + 0.3 * row * (column - step);
      const double other = noise(0, step, i);  // cancels
      const int last = world.size() - 1;
      if (last == 0) return part;
      return rank == 0 ? part + other : rank == last ? -other : 0.0;
    };
    for (const index_t plain : {0, 2}) {
      Sent<double> sent{world.communicator(), PowerSgd({.rank = 2, .plain_steps = plain})};
      for (int step = 0; step < 6; ++step) {
        CommTrace trace(world);
        const auto got = sent.step(step, addend);
        CHECK(trace.count(CollectiveKind::all_reduce) == (step < plain ? 1 : 2));
        for (index_t i = 0; i < size; ++i)
          CHECK(std::abs(got[std::size_t(i)] - sum_of(addend, world.size(), step, i)) < 1e-10);
      }
    }
    // nothing to send, then something: the start vectors are drawn again
    Sent<float> late{world.communicator(), PowerSgd({.rank = 1, .plain_steps = 0})};
    const Addend nothing = [](int, int, index_t) { return 0.0; };
    const Addend ones = [](int, int, index_t) { return 1.0; };
    CHECK(late.step(0, nothing) == std::vector<double>(size, 0.0));
    for (const double x : late.step(1, ones)) CHECK(std::abs(x - world.size()) < 1e-5);
  });
}

TEST_CASE("PowerSGD: the error of a step is added to later ones, nothing is lost") {
  on_ranks({2, 4}, [](World& world) {
    Sent<double> sent{world.communicator(), PowerSgd({.rank = 1, .plain_steps = 0})};
    std::vector<double> total(size, 0);
    double early = 0, late = 0;  // largest error of the mean over the steps
    for (int step = 0; step < 80; ++step) {
      const auto got = sent.step(0, noise);  // the same gradient in every step
      double worst = 0;
      for (std::size_t i = 0; i < size; ++i) {
        total[i] += got[i];
        worst = std::max(
            worst, std::abs(total[i] / (step + 1) - sum_of(noise, world.size(), 0, index_t(i))));
      }
      if (step == 0) early = worst;
      late = worst;
    }
    CHECK(early > 0.5);  // one direction is not enough
    CHECK(late < 0.1);
  });
}

TEST_CASE("invalid hooks are refused") {
  CHECK(contains(error_of([] { TopK(0.0); }), "TopK: the share must be in (0, 1], not 0"));
  CHECK(contains(error_of([] { PowerSgd({.rank = 0}); }),
                 "PowerSgd: the rank must be at least 1, not 0"));
}

TEST_CASE("training with every hook ends near one rank's losses") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto make = [&] {
      manual_seed(world, 3);
      return requires_grad(
          replicate(nn::mlp<float>(5, 8, 3, nn::Tanh{}), mesh, dp{}, {.bucket_bytes = {16, 200}}));
    };
    manual_seed(world, 4);
    const auto x = randn<float>({10, 5}, mesh, Shard<0>{});
    const auto target = randn<float>({10, 3}, mesh, Shard<0>{});
    const auto train = [&](const auto& model) {
      auto optimizer = nn::momentum_sgd(model, {.learning_rate = 0.1});
      double loss = 0;
      for (int step = 0; step < 40; ++step) {
        const auto value = mean(square(model(x) - target));
        zero_grad(model);
        backward(value);
        optimizer.step(model);
        loss = double(value.value().item());
      }
      return loss;
    };
    const double start = double(mean(square(make()(x) - target)).value().item());
    const double exact = train(make());
    CHECK(exact < 0.6 * start);
    const auto check = [&](const CommHook& hook, double tolerance) {
      const auto model = make();
      model.register_comm_hook(hook);
      CHECK(std::abs(train(model) - exact) < tolerance * exact);
    };
    check(AllReduce{}, 1e-6);
    check(Bf16Compress{}, 0.02);
    check(Fp16Compress{}, 0.005);
    check(PowerSgd({.rank = 2, .plain_steps = 5}), 0.2);
    check(TopK(0.25), 0.2);

    const auto apart = make();
    apart.register_comm_hook(NoCommunication{});
    CommTrace trace(world);
    backward(mean(square(apart(x) - target)));
    CHECK(trace.count(CollectiveKind::all_reduce, "dp") == 0);
  });
}
