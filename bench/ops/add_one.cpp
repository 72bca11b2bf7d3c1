// The nanoseconds that a mesh adds to adding one to a one-element tensor: the time of the call on a
// DTensor less that of its bare kernel, with allocation of the result in both. Must also compile
// with the headers of earlier versions. @see ops.sh
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <cleave/comm/run.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::kernels;

namespace {

using Clock = std::chrono::steady_clock;

template <class F>
double nanoseconds_of(const F& f) {
  constexpr int repeats = 2000;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < repeats; ++i) f();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / repeats;
}

void add_one(World& world) {
  const auto mesh = init_device_mesh<dp, tp>(world, {1, 1});
  const auto x = ones<float>({1}, mesh, Shard<0>{}, Replicate{});
  const Tensor<float, 1>& local = x.to_local();
  const auto plus_one = [](float a) { return a + 1.0f; };
  std::vector<double> differences;
  for (int i = 0; i < 101; ++i) {
    const double kernel = nanoseconds_of([&] {
      const Tensor<float, 1> y({1});
      map_elements(On<Host>{}, plus_one, write(y), read(local));
      return y;
    });
    differences.push_back(nanoseconds_of([&] { return add(x, 1.0f); }) - kernel);
  }
  std::sort(differences.begin(), differences.end());
  std::printf("%.1f\n", differences[differences.size() / 2]);
}

}  // namespace

int main() { run_threads(1, add_one); }
