// Operations against their building blocks, in the same run: the host time that a DTensor operation
// adds to its local kernel on tiny arrays (allocation included in both), kernels on large arrays as
// ratios to a copy of the same bytes, and calls as a user writes them, including creation and
// destruction of the result.
//
// `call.add.64MiB.vs_memcpy` is the time of a memcpy of 64 MiB into memory that has been written
// before, divided by the time of `add(a, b)` on DTensors of 64 MiB of floats each, on one rank. The
// call reads two arrays and writes one, the copy reads one: at the same bandwidth the ratio would
// be 2/3. A call that writes its result to fresh pages gives about 0.2. `add_(a, b)` writes to
// lines that it has read, whereas the stores of the copy first read their lines needlessly: about
// 2.
#include <cstdio>
#include <cstring>
#include <vector>

#include <cleave/comm/run.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/elementwise/in_place.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "../timing.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::kernels;
using bench::median;
using bench::seconds_of;

namespace {

/// Nanoseconds that `op` takes more than `kernel`: interleaved, median of the differences.
template <class Op, class Kernel>
void overhead(const char* name, const Op& op, const Kernel& kernel) {
  std::vector<double> differences;
  for (int i = 0; i < 101; ++i) {
    const double local = seconds_of(2000, kernel);
    differences.push_back(seconds_of(2000, op) - local);
  }
  std::printf("ops.%s.overhead %.1f ns\n", name, 1e9 * median(differences));
}

/// The time of a copy divided by that of `kernel`, where each reads and writes `bytes` in total.
template <class Kernel>
void against_memcpy(const char* name, std::size_t bytes, const Kernel& kernel) {
  std::vector<char> from(bytes / 2, 1), to(bytes / 2, 2);
  std::vector<double> kernels, copies;
  for (int i = 0; i < 31; ++i) {
    kernels.push_back(seconds_of(1, kernel));
    copies.push_back(seconds_of(1, [&] { std::memcpy(to.data(), from.data(), from.size()); }));
  }
  std::printf("ops.%s.vs_memcpy %.3f ratio\n", name, median(copies) / median(kernels));
}

using Matrix = Tensor<float, 2>;
constexpr On<Host> host{};
constexpr auto add_elements = [](float a, float b) { return a + b; };

void overheads(World& world) {
  const auto mesh = init_device_mesh<dp, tp>(world, {1, 1});
  const auto x = ones<float>({4, 4}, mesh, Shard<0>{}, Replicate{});
  const auto w = ones<float>({4, 4}, mesh, Replicate{}, Shard<1>{});
  const Matrix& a = x.to_local();
  const Matrix& b = w.to_local();
  overhead(
      "matmul", [&] { return matmul(x, w); },
      [&] {
        const Matrix y({4, 4});
        gemm(host, as_matrix(read(a)), as_matrix(read(b)), as_matrix(write(y)));
        return y;
      });
  overhead(
      "add", [&] { return add(x, x); },
      [&] {
        const Matrix y({4, 4});
        map_elements(host, add_elements, write(y), read(a), read(a));
        return y;
      });
  overhead(
      "sum", [&] { return sum(x, dim<1>{}); },
      [&] {
        const Tensor<float, 1> y({4});
        reduce_dims<Sum>(host, read(a), 2u, write(y));
        return y;
      });
}

void bandwidths() {
  constexpr index_t n = 2048;
  constexpr std::size_t bytes = std::size_t(n) * n * sizeof(float);
  const Matrix a({n, n}), b({n, n}), c({n, n});
  const Tensor<float, 1> row({n});
  for (const Matrix& m : {a, b, c}) m.fill_(1);
  row.fill_(1);
  Shape repeated = Shape::filled(2, 0);
  repeated[1] = 1;
  const Strided<const float> rows{row.data(), Shape(a.shape()), repeated};
  const auto map_to_c = [&](const auto&... x) { map_elements(host, add_elements, write(c), x...); };
  against_memcpy("map", 3 * bytes, [&] { map_to_c(read(a), read(b)); });
  against_memcpy("map_row", 2 * bytes, [&] { map_to_c(read(a), rows); });
  against_memcpy("map_transposed", 3 * bytes, [&] {
    const Matrix transposed = b.transpose(0, 1);
    map_to_c(read(a), read(transposed));
  });
  against_memcpy("sum_rows", bytes, [&] { reduce_dims<Sum>(host, read(a), 2u, write(row)); });
  against_memcpy("sum_cols", bytes, [&] { reduce_dims<Sum>(host, read(a), 1u, write(row)); });
  against_memcpy("max_rows", bytes, [&] { reduce_dims<Max>(host, read(a), 2u, write(row)); });
  against_memcpy("max_cols", bytes, [&] { reduce_dims<Max>(host, read(a), 1u, write(row)); });
}

/// The time of a memcpy of 64 MiB divided by that of a call with a result of that size.
template <class Call>
void call_against_memcpy(const char* name, const Call& call) {
  constexpr std::size_t bytes = std::size_t(64) << 20;
  std::vector<char> from(bytes, 1), to(bytes, 2);
  std::vector<double> calls, copies;
  for (int i = 0; i < 31; ++i) {
    calls.push_back(seconds_of(1, call));
    copies.push_back(seconds_of(1, [&] { std::memcpy(to.data(), from.data(), bytes); }));
  }
  std::printf("call.%s.64MiB.vs_memcpy %.3f ratio\n", name, median(copies) / median(calls));
}

void calls(World& world) {
  const auto mesh = init_device_mesh<dp>(world, {1});
  const auto a = ones<float>({4096, 4096}, mesh, Shard<0>{});
  const auto b = ones<float>({4096, 4096}, mesh, Shard<0>{});
  call_against_memcpy("add", [&] { return add(a, b); });
  call_against_memcpy("scale", [&] { return mul(a, 2.0f); });
  call_against_memcpy("add_", [&] { add_(a, b); });
  call_against_memcpy("map_", [&] { map_([](float p, float g) { return p - 0.1f * g; }, a, b); });
}

template <class T>
void products(const char* name) {
  constexpr index_t n = 512;
  const Tensor<T, 2> a({n, n}), b({n, n}), c({n, n});
  a.fill_(T(1));
  b.fill_(T(1));
  std::vector<double> best, ours;
  for (int i = 0; i < 11; ++i) {
    best.push_back(seconds_of(
        1, [&] { gemm(host, as_matrix(read(a)), as_matrix(read(b)), as_matrix(write(c))); }));
    ours.push_back(seconds_of(1, [&] {
      kernels::detail::blocked_gemm(as_matrix(read(a)), as_matrix(read(b)), as_matrix(write(c)));
    }));
  }
  const double operations = 2e-9 * double(n) * double(n) * double(n);
  std::printf("ops.gemm.%s %.2f Gop/s\n", name, operations / median(best));
  std::printf("ops.blocked_gemm.%s %.2f Gop/s\n", name, operations / median(ours));
}

/// The time of the BLAS divided by that of the host's gemm for k-means' product of points and
/// transposed centroids: narrow, hence not left to the BLAS.
template <class T>
void narrow_product(const char* name, index_t points, index_t features) {
#if defined(CLEAVE_HAS_CBLAS) && CLEAVE_HAS_CBLAS
  constexpr index_t clusters = 10;
  const Tensor<T, 2> x({points, features}), centroids({clusters, features}), y({points, clusters});
  x.fill_(T(1));
  centroids.fill_(T(1));
  const auto a = as_matrix(read(x)), b = as_matrix(read(centroids.transpose(0, 1)));
  std::vector<double> ratios;
  for (int i = 0; i < 31; ++i) {
    const double ours = seconds_of(10, [&] { gemm(host, a, b, as_matrix(write(y))); });
    ratios.push_back(
        seconds_of(10, [&] { kernels::detail::cblas_gemm(a, b, as_matrix(write(y)), false); }) /
        ours);
  }
  std::printf("ops.gemm.narrow.%s.vs_blas %.2f ratio\n", name, median(ratios));
#endif
}

/// Nanoseconds that `f` takes more than `g`: interleaved, median of the differences.
template <class F, class G>
void difference(const char* name, int repeats, double units, const F& f, const G& g) {
  std::vector<double> differences;
  for (int i = 0; i < 101; ++i) {
    const double second = seconds_of(repeats, g);
    differences.push_back(seconds_of(repeats, f) - second);
  }
  std::printf("%s %.1f ns\n", name, 1e9 * median(differences) / units);
}

/// The time that a mesh adds to a call on one device, and that the tape adds to an operation called
/// and differentiated (record, sweep and release), relative to the same arithmetic by hand.
void call_paths(World& world) {
  const auto mesh = init_device_mesh<dp, tp>(world, {1, 1});
  const auto x = ones<float>({1}, mesh, Shard<0>{}, Replicate{});
  const auto& local = x.to_local();
  difference(
      "dispatch.dtensor_over_tensor_ns", 2000, 1, [&] { return add(x, x); },
      [&] { return add(local, local); });
  constexpr int chain = 200;
  difference(
      "tape.overhead_per_op_ns", 20, chain,
      [&] {
        const auto leaf = requires_grad(x);
        auto y = leaf * 2.0f;
        for (int i = 0; i < chain; ++i) y = y * leaf;
        backward(sum(y));
        return grad(leaf);
      },
      [&] {
        auto y = x * 2.0f;
        for (int i = 0; i < chain; ++i) y = y * x;
        auto g = x * 2.0f, total = x * 0.0f;
        for (int i = 0; i < chain; ++i) {  // d(y x): g x to y, g y to x
          total = total + g * y;
          g = g * x;
        }
        return total;
      });
}

}  // namespace

int main() {
  run_threads(1, overheads);
  run_threads(1, call_paths);
  run_threads(1, calls);
  bandwidths();
  products<float>("f32");
  products<double>("f64");
  products<std::int64_t>("i64");
  narrow_product<double>("digits", 1797, 64);
  narrow_product<double>("digits_2x2", 899, 32);
  narrow_product<float>("mnist", 60000, 784);
}
