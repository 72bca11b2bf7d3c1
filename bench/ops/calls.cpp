// Calls as a user writes them, including creation and destruction of the result: reads a name per
// line, writes the seconds of one call. compare.py drives it, interleaved with the same calls of
// other libraries.
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <string>

#include <cleave/comm/run.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/normalisation/layer_norm.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/reductions/argmax.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "../timing.hpp"

using namespace cleave;

namespace {

/// 64 MiB, on one rank; the elements are those of compare.py.
void answer(World& world) {
  constexpr index_t n = 4096;
  const auto mesh = init_device_mesh<axes::dp>(world, {1});
  const auto x = zeros<float>({n, n}, mesh, Shard<0>{});
  for (index_t i = 0; i < n * n; ++i) x.to_local().data()[i] = float(i * 7919 % 8000) / 1000 - 4;
  const auto positive = abs(x) + 0.5f;
  const auto weight = ones<float>({n}, mesh, Replicate{}),
             bias = zeros<float>({n}, mesh, Replicate{});
  const std::map<std::string, std::function<void()>> calls{
      {"exp", [&] { exp(x); }},
      {"log", [&] { log(positive); }},
      {"tanh", [&] { tanh(x); }},
      {"sigmoid", [&] { sigmoid(x); }},
      {"gelu", [&] { gelu(x); }},
      {"erf", [&] { erf(x); }},
      {"sin", [&] { sin(x); }},
      {"cos", [&] { cos(x); }},
      {"softmax", [&] { softmax(x, dim<1>{}); }},
      {"log_softmax", [&] { log_softmax(x, dim<1>{}); }},
      {"layer_norm", [&] { layer_norm(x, weight, bias); }},
      {"max", [&] { max(x); }},
      {"min", [&] { min(x); }},
      {"max_dim", [&] { max(x, dim<1>{}); }},
      {"argmax", [&] { argmax(x, dim<1>{}); }},
  };
  for (std::string name; std::getline(std::cin, name);) {
    const auto call = calls.find(name);
    if (call == calls.end()) throw Error("bench", "unknown call '" + name + "'");
    std::cout << bench::seconds_of(1, call->second) << std::endl;
  }
}

}  // namespace

int main() { run_threads(1, answer); }
