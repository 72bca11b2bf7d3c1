// The steps of optimizers with state in traced functions.
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/nn.hpp>
#include <cleave/spmd.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

/// Two trained parameters with gradients; between them one that no loss uses.
template <class A, class Idle, class B>
struct TwoAndIdle {
  A a;
  Idle idle;
  B b;
  static constexpr nn::names members{"a", "idle", "b"};
};

template <class T, class Mesh, class... P>
auto two_and_idle(const Mesh& mesh, P... p) {
  const auto a = cast<T>(sub(rand<double>({5, 3}, mesh, p...), 0.5));
  const auto b = cast<T>(sub(rand<double>({4}, mesh, p...), 0.5));
  return requires_grad(
      TwoAndIdle<std::remove_const_t<decltype(a)>, std::remove_const_t<decltype(b)>,
                 std::remove_const_t<decltype(b)>>{a, add(b, b), b});
}

/// The gradients of a and b are different in each element and step.
constexpr auto step_of_two = [](const auto& model, const auto& optimizer) {
  const auto part = []<class X>(const X& x) {
    if constexpr (is_complex<typename X::value_type>) return sum(square(abs(x)));
    else return sum(mul(square(x), x));
  };
  backward(add(part(model.a), part(model.b)));
  optimizer.step(model);
  return model.a.value();
};

template <class X>
void append_bytes(std::vector<std::byte>& bytes, const X& x) {
  const std::size_t old = bytes.size(), more = std::size_t(x.size()) * sizeof(*x.data());
  bytes.resize(old + more);
  if (more > 0) std::memcpy(bytes.data() + old, x.data(), more);
}

/// The bytes of all parameters and buffers.
template <class... M>
std::vector<std::byte> state_bytes(const M&... m) {
  std::vector<std::byte> bytes;
  const auto append = [&](const std::string&, const auto& x) {
    const auto& value = cleave::detail::innermost(x);
    if constexpr (is_dtensor<std::remove_cvref_t<decltype(value)>>)
      append_bytes(bytes, value.full_tensor());
    else append_bytes(bytes, value);
  };
  (nn::named_tensors(m, append), ...);
  return bytes;
}

/// Three steps of a program and of calls: the same bytes of parameters, state and counts.
/// @param make  makes the model, and an optimizer of it
template <class Make, class Optimize, class Mesh>
void check_steps(World& world, const Mesh& mesh, const Make& make, const Optimize& optimize) {
  manual_seed(world, 3);
  const auto called = make(mesh);
  auto called_optimizer = optimize(called);
  manual_seed(world, 3);
  const auto model = make(mesh);
  auto optimizer = optimize(model);
  const spmd::Graph graph =
      spmd::trace(step_of_two, spmd::args_of(model), spmd::args_of(optimizer, "optimizer"));
  const spmd::Program program = spmd::expand(graph, spmd::schemas_of(model, optimizer));
  INFO(to_string(program, mesh));
  REQUIRE(!program.fault);
  spmd::Runner runner(program, mesh);
  using A = std::remove_cvref_t<decltype(model.a.value())>;
  const std::vector<std::byte> start = state_bytes(model, optimizer);
  for (int step = 0; step < 3; ++step) {
    const double rate = 0.125 / (step + 1);  // not that of the trace
    called_optimizer.options.learning_rate = optimizer.options.learning_rate = rate;
    step_of_two(called, called_optimizer);
    zero_grad(called);
    if (step == 1) {  // the untyped form
      runner(spmd::inputs_of(model, optimizer));
    } else {
      static_cast<void>(runner.template run<A>(model, optimizer));
    }
    CHECK(state_bytes(model, optimizer) == state_bytes(called, called_optimizer));
  }
  CHECK(state_bytes(model, optimizer) != start);
  CHECK(optimizer.steps.value(0) == 3);
  CHECK(optimizer.steps.value(1) == 0);
  CHECK(optimizer.steps.value(2) == 3);
}

template <class T>
void check_optimizers() {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto check = [&](const auto& optimize) {
      const auto with = [&](auto... p) {
        check_steps(
            world, mesh, [=](const auto& on) { return two_and_idle<T>(on, p...); }, optimize);
      };
      with(Replicate{});
      with(Shard<0>{});
    };
    check(
        [](const auto& m) { return nn::adamw(m, {.learning_rate = 0.125, .weight_decay = 0.25}); });
    check([](const auto& m) {
      return nn::adam(m, {.learning_rate = 0.1, .beta1 = 0.8, .weight_decay = 0.3});
    });
    check([](const auto& m) {
      return nn::momentum_sgd(
          m, {.learning_rate = 0.1, .dampening = 0.25, .nesterov = true, .weight_decay = 0.3});
    });
  });
}

}  // namespace

TEST_CASE("steps of optimizers in a program equal calls bit by bit: float and double") {
  check_optimizers<double>();
  check_optimizers<float>();
}

TEST_CASE("steps of optimizers in a program equal calls bit by bit: half and complex") {
  check_optimizers<half>();
  check_optimizers<bfloat16>();
  check_optimizers<std::complex<double>>();
}

TEST_CASE("AdamW in a program follows its definition, with weights in uneven and empty shards") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    manual_seed(world, 5);
    const nn::AdamOptions o{.learning_rate = 0.05, .beta1 = 0.7, .weight_decay = 0.4};
    const auto model = two_and_idle<double>(mesh, Shard<0>{});
    const auto optimizer = nn::adamw(model, o);
    const auto before = model.a.value().full_tensor().clone();
    const spmd::Graph graph =
        spmd::trace(step_of_two, spmd::args_of(model), spmd::args_of(optimizer));
    spmd::Runner runner(spmd::expand(graph, spmd::schemas_of(model, optimizer)), mesh);
    for (int step = 0; step < 3; ++step) runner(spmd::inputs_of(model, optimizer));
    const auto after = model.a.value().full_tensor();
    for (index_t i = 0; i < 15; ++i) {
      double p = before.data()[i], m = 0, v = 0;
      for (int t = 1; t <= 3; ++t) {
        const double g = 3 * p * p;  // of the sum of cubes
        m = o.beta1 * m + (1 - o.beta1) * g;
        v = o.beta2 * v + (1 - o.beta2) * g * g;
        const double first = m / (1 - std::pow(o.beta1, t));
        const double second = v / (1 - std::pow(o.beta2, t));
        p -= o.learning_rate * o.weight_decay * p;
        p -= o.learning_rate * first / (std::sqrt(second) + o.epsilon);
      }
      CHECK(std::abs(after.data()[i] - p) < 1e-12);
    }
  });
}

TEST_CASE("the state of an optimizer adds no communication to a step with sharded parameters") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto model = two_and_idle<float>(mesh, Shard<0>{});
    const auto optimizer = nn::adamw(model, {});
    const auto step = [](const auto& m, const auto& with) {
      backward(add(sum(square(m.a)), sum(square(m.b))));
      with.step(m);
    };
    const auto traced_step = [&](const auto& m, const auto& with) {
      step(m, with);
      return std::tuple<>{};
    };
    const spmd::Graph graph =
        spmd::trace(traced_step, spmd::args_of(model), spmd::args_of(optimizer, "optimizer"));
    std::string names;
    for (const spmd::Input& input : graph.inputs)
      names += std::string(input.name) + (input.updated >= 0 ? "* " : " ");
    CHECK(names ==
          "a* idle b* optimizer.exp_avg.a* optimizer.exp_avg.idle optimizer.exp_avg.b* "
          "optimizer.exp_avg_sq.a* optimizer.exp_avg_sq.idle optimizer.exp_avg_sq.b* "
          "optimizer.steps* optimizer.options.learning_rate ");
    const spmd::Program program = spmd::expand(graph, spmd::schemas_of(model, optimizer));
    REQUIRE(!program.fault);
    CHECK(spmd::communications(program) == 0);
  });
}

TEST_CASE("every run reads the learning rate, also as the first input; without args_of it stays") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto model = two_and_idle<double>(mesh, Shard<0>{});
    auto given = nn::sgd({.learning_rate = 0.5}), captured = given;
    const spmd::Graph by_given =
        spmd::trace([](const auto& optimizer, const auto& m) { return step_of_two(m, optimizer); },
                    spmd::args_of(given, "sgd"), spmd::args_of(model));
    const spmd::Graph by_captured =
        spmd::trace([&](const auto& m) { return step_of_two(m, captured); }, spmd::args_of(model));
    CHECK(std::string(by_given.inputs[0].name) == "sgd.options.learning_rate");
    CHECK(by_given.inputs.size() == by_captured.inputs.size() + 1);
    spmd::Runner run_given(spmd::expand(by_given, spmd::schemas_of(given, model)), mesh);
    spmd::Runner run_captured(spmd::expand(by_captured, spmd::schemas_of(model)), mesh);
    using A = std::remove_cvref_t<decltype(model.a.value())>;
    const auto check = [&](double rate, const auto& run) {
      const auto before = model.a.value().full_tensor().clone();
      run();
      const auto after = model.a.value().full_tensor();
      for (index_t i = 0; i < before.size(); ++i) {
        const double w = before.data()[i];
        CHECK(after.data()[i] == doctest::Approx(w - rate * 3 * w * w));
      }
    };
    for (const double rate : {0.25, 0.125}) {
      given.options.learning_rate = captured.options.learning_rate = rate;
      check(rate, [&] { static_cast<void>(run_given.template run<A>(given, model)); });
      check(0.5, [&] { static_cast<void>(run_captured.template run<A>(model)); });
    }
  });
}

TEST_CASE("a step whose gradient is the parameter itself does not write over what it reads") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto model = two_and_idle<double>(mesh, Shard<0>{});
    const auto optimizer = nn::sgd({.learning_rate = 0.25, .weight_decay = 0.5});
    const spmd::Graph graph = spmd::trace(
        [](const auto& m, const auto& by) {
          backward(m.a, m.a.value());
          backward(m.b, mul(m.b.value(), 2));
          by.step(m);
          return std::tuple{};
        },
        spmd::args_of(model), spmd::args_of(optimizer));
    const spmd::Program program = spmd::expand(graph, spmd::schemas_of(model, optimizer));
    int in_place = 0;
    for (const int input : spmd::write_in_place(program)) in_place += input >= 0;
    CHECK(in_place == 1);  // that of b
    const auto a = model.a.value().full_tensor().clone();
    const auto b = model.b.value().full_tensor().clone();
    spmd::Runner(program, mesh).template run<>(model, optimizer);
    const auto new_a = model.a.value().full_tensor();
    const auto new_b = model.b.value().full_tensor();
    for (index_t i = 0; i < a.size(); ++i)
      CHECK(new_a.data()[i] == doctest::Approx(a.data()[i] * (1 - 0.25 * 1.5)));
    for (index_t i = 0; i < b.size(); ++i)
      CHECK(new_b.data()[i] == doctest::Approx(b.data()[i] * (1 - 0.25 * 2.5)));
  });
}

TEST_CASE("a traced step with the state of another module is an error") {
  on_ranks({1}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {1});
    const auto model = two_and_idle<double>(mesh, Replicate{});
    const auto trace_with = [&](const auto& optimizer) {
      return error_of(
          [&] { spmd::trace(step_of_two, spmd::args_of(model), spmd::args_of(optimizer)); });
    };
    CHECK(contains(trace_with(nn::adam(std::tuple{model.a, model.b}, {})),
                   "the module has 3 trained parameters, the optimizer was made for 2"));
    CHECK(contains(trace_with(nn::momentum_sgd(std::tuple{model.b, model.b, model.b}, {})),
                   "a parameter is float64 with 2 dimensions, the optimizer was made for one of "
                   "type float64 with 1"));
  });
}

TEST_CASE("a program refuses counts of steps of another optimizer") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto model = two_and_idle<double>(mesh, Replicate{});
    auto optimizer = nn::momentum_sgd(model, {});
    const spmd::Graph graph =
        spmd::trace(step_of_two, spmd::args_of(model), spmd::args_of(optimizer));
    spmd::Runner runner(spmd::expand(graph, spmd::schemas_of(model, optimizer)), mesh);
    optimizer.steps.value = Tensor<index_t, 1>({2});
    CHECK(contains(error_of([&] { runner(spmd::inputs_of(model, optimizer)); }),
                   "input 6 'steps' is int64 [2] (Replicate), the program takes int64 [3] "
                   "(Replicate)"));
  });
}
