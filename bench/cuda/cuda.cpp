// The GPU side against bare CUDA, in one run on one device: prints lines `name value unit`.
//
//     sh bench/run.sh cuda [--mib 256] [--repeat 20]
//
// Ratios are cleave's bandwidth divided by the counterpart's. The counterparts are cudaMemcpyAsync
// (reads and writes), a loop that only reads, and a bare cublasLtMatmul.
#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <cleave/cuda.hpp>

#include "bare.hpp"

using namespace cleave;
using axes::tp;

namespace {

struct Options {
  index_t mebibytes = 256;
  int repeat = 20;
};

/// Milliseconds that the device takes for the work that f enqueues: the median of several runs.
template <class F>
double milliseconds(int repeat, F f) {
  cudaEvent_t begin, end;
  cleave::cuda::check(cudaEventCreate(&begin), "bench");
  cleave::cuda::check(cudaEventCreate(&end), "bench");
  const cudaStream_t stream = cleave::cuda::current_stream().get();
  for (int i = 0; i < 3; ++i) f();
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    cleave::cuda::check(cudaEventRecord(begin, stream), "bench");
    f();
    cleave::cuda::check(cudaEventRecord(end, stream), "bench");
    cleave::cuda::check(cudaEventSynchronize(end), "bench");
    float elapsed = 0;
    cleave::cuda::check(cudaEventElapsedTime(&elapsed, begin, end), "bench");
    times.push_back(double(elapsed));
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void report(const char* name, double value, const char* unit) {
  std::printf("%s %.3f %s\n", name, value, unit);
  std::fflush(stdout);
}

struct Multiply {
  CLEAVE_HOST_DEVICE float operator()(float a, float b, float c) const { return a * b + c; }
};
struct Add {
  using Number = std::complex<double>;
  CLEAVE_HOST_DEVICE Number operator()(const Number& a, const Number& b) const {
    return {a.real() + b.real(), a.imag() + b.imag()};
  }
};

/// Bytes per millisecond of a copy that reads and writes `bytes`.
double copy_rate(const Options& options, std::size_t bytes) {
  const Tensor<std::uint8_t, 1, Cuda> from({index_t(bytes)}), to({index_t(bytes)});
  from.fill_(1);
  return 2 * double(bytes) / milliseconds(options.repeat, [&] {
           cleave::cuda::check(
               cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice,
                               cleave::cuda::current_stream().get()),
               "bench");
         });
}

void kernels_against_copies(const Options& options) {
  const index_t count = options.mebibytes * (1 << 20) / 4;
  const double copied = copy_rate(options, std::size_t(count) * 4);
  report("cuda.copy", copied / 1e6, "GB/s");

  // bandwidth of a copy from a view to a contiguous array, against a memcpy
  const auto compare = [&](const char* name, const auto& view, const auto& to) {
    const double ms = milliseconds(options.repeat, [&] { to.copy_(view); });
    report(name, 2 * double(to.size()) * sizeof(*to.data()) / ms / copied, "ratio");
  };
  {  // rows of 48 floats out of 64
    const index_t rows = count / 48;
    const Tensor<float, 2, Cuda> wide({rows, 64}), packed({rows, 48});
    wide.fill_(1);
    compare("cuda.pack_vs_copy", wide.slice(1, 8, 56), packed);
  }
  {  // rows that begin and end at odd offsets
    const index_t rows = count / 2048;
    const Tensor<bfloat16, 2, Cuda> wide({rows, 4097}), packed({rows, 4095});
    wide.fill_(bfloat16(1.0f));
    compare("cuda.pack_bf16_odd_vs_copy", wide.slice(1, 1, 4096), packed);
  }
  index_t side = 1024;
  while (side * side * 4 <= count) side *= 2;
  {
    const Tensor<float, 2, Cuda> a({side, side}), b({side, side});
    a.fill_(1);
    compare("cuda.transpose_vs_copy", a.transpose(0, 1), b);
  }
  {
    const Tensor<std::uint8_t, 2, Cuda> a({2 * side - 1, 2 * side - 1}), b(a.shape());
    a.fill_(1);
    compare("cuda.transpose_u8_odd_vs_copy", a.transpose(0, 1), b);
  }
  {
    const Tensor<std::complex<double>, 1, Cuda> a({count / 4}), b({count / 4}), out({count / 4});
    for (const auto& x : {a, b}) x.fill_(1);
    const double ms = milliseconds(options.repeat, [&] {
      map_elements(kernels::On<Cuda>{}, Add{}, kernels::write(out), kernels::read(a),
                   kernels::read(b));
    });
    report("cuda.map_complex128_vs_copy", 3 * double(count) * 4 / ms / copied, "ratio");
  }
  {
    const Tensor<float, 1, Cuda> a({count}), b({count}), c({count}), out({count});
    for (const auto& x : {a, b, c}) x.fill_(1);
    const double ms = milliseconds(options.repeat, [&] {
      map_elements(kernels::On<Cuda>{}, Multiply{}, kernels::write(out), kernels::read(a),
                   kernels::read(b), kernels::read(c));
    });
    report("cuda.map3_vs_copy", 4 * double(count) * 4 / ms / copied, "ratio");
  }
  {
    const Tensor<float, 1, Cuda> a({count});
    const Tensor<float, 0, Cuda> sum{std::array<index_t, 0>{}};
    a.fill_(1);
    const double read = milliseconds(options.repeat, [&] { bare::read(a.data(), count); });
    const double ms = milliseconds(options.repeat, [&] {
      reduce_dims<Sum>(kernels::On<Cuda>{}, kernels::read(a), 1u, kernels::write(sum));
    });
    report("cuda.sum_vs_read", read / ms, "ratio");
  }
}

/// Random numbers in [-1, 1): with equal numbers a GPU draws less power, and runs faster.
Tensor<bfloat16, 2, Cuda> random_matrix(index_t side, unsigned seed) {
  Tensor<bfloat16, 2> values({side, side});
  std::minstd_rand next(seed);
  for (index_t i = 0; i < values.size(); ++i)
    values.data()[i] = bfloat16(float(next() % 65536) / 32768 - 1);
  return values.to(Cuda{});
}

void products_against_cublaslt(const Options& options, index_t side) {
  const auto a = random_matrix(side, 1), b = random_matrix(side, 2);
  const Tensor<bfloat16, 2, Cuda> c({side, side});
  const bare::Matmul baseline{int(side)};
  const double bare = milliseconds(options.repeat, [&] { baseline(a.data(), b.data(), c.data()); });
  const double ms = milliseconds(options.repeat, [&] {
    gemm(kernels::On<Cuda>{}, as_matrix(kernels::read(a)), as_matrix(kernels::read(b)),
         as_matrix(kernels::write(c)));
  });
  report(("cuda.matmul_" + std::to_string(side) + "_bf16_vs_cublaslt").c_str(), bare / ms, "ratio");
}

void launches(World& world) {
  const auto mesh = init_device_mesh<tp>(world, {1}, Cuda{});
  const auto x = ones<float>({64}, mesh, Replicate{});
  constexpr int calls = 2000;
  double best = 1e30;
  for (int round = 0; round < 5; ++round) {
    cleave::cuda::current_stream().synchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) static_cast<void>(x + 1.0f);
    const std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - begin;
    cleave::cuda::current_stream().synchronize();
    best = std::min(best, spent.count() / calls);
  }
  report("cuda.op_launch_us", best, "us");
}

/// Ranks that share the device: the bytes all of them move together, against a copy of as many
/// bytes.
void ranks_on_one_device(World& world, const Options& options) {
  const auto mesh = init_device_mesh<tp>(world, {world.size()}, Cuda{});
  const index_t count = options.mebibytes * (1 << 20) / 4;
  const auto x = ones<float>({count}, mesh, Shard<0>{});
  const double copied = world.rank() == 0 ? copy_rate(options, std::size_t(count) * 4) : 1;

  // host time between barriers, because the streams of several ranks are involved
  const auto seconds = [&](auto&& f) {
    std::vector<double> times;
    for (int i = 0; i < options.repeat; ++i) {
      cleave::cuda::current_stream().synchronize();
      world.barrier();
      const auto begin = std::chrono::steady_clock::now();
      f();
      cleave::cuda::current_stream().synchronize();
      world.barrier();
      times.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
              .count());
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  };
  const double ranks = double(world.size());
  const double gather = seconds([&] { static_cast<void>(x.redistribute(Replicate{})); });
  const Tensor<float, 1, Cuda> whole({count});
  whole.fill_(1);
  const double scatter = seconds([&] {
    static_cast<void>(functional::reduce_scatter(whole, Sum{}, 0, functional::Group(mesh)).wait());
  });
  if (world.rank() != 0) return;
  // an all-gather reads and writes the whole array for every rank; a reduce-scatter reads it for
  // every rank and writes it once
  report("cuda.all_gather_vs_copy", 2 * ranks * double(count) * 4 / gather / copied, "ratio");
  report("cuda.reduce_scatter_vs_copy", (ranks + 1) * double(count) * 4 / scatter / copied,
         "ratio");
}

#if defined(CLEAVE_HAS_NCCL)
/// One rank: the host time of a call beyond that of the bare NCCL call.
void nccl_calls(World& world) {
  setenv("CLEAVE_CUDA_COMM", "nccl", 1);
  const auto mesh = init_device_mesh<tp>(world, {1}, Cuda{});
  Communicator& group = mesh.communicator();
  const ncclComm_t comm = nccl_handle(group);
  const Tensor<float, 1, Cuda> x({1024}), y({1024});
  x.fill_(1);
  Collective c;
  c.kind = CollectiveKind::all_reduce;
  c.source = x.view();
  c.destination = y.view();
  c.global_count = 1024;
  constexpr int calls = 2000;
  const auto per_call = [&](auto&& f) {
    double best = 1e30;
    for (int round = 0; round < 5; ++round) {
      cleave::cuda::current_stream().synchronize();
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < calls; ++i) f();
      const std::chrono::duration<double, std::micro> spent =
          std::chrono::steady_clock::now() - begin;
      best = std::min(best, spent.count() / calls);
    }
    return best;
  };
  const double bare = per_call([&] {
    ncclAllReduce(x.data(), y.data(), 1024, ncclFloat32, ncclSum, comm,
                  cleave::cuda::current_stream().get());
  });
  report("nccl.call_overhead_us", per_call([&] { group.run(c); }) - bare, "us");
}
#endif

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--mib") == 0) options.mebibytes = std::atol(argv[i + 1]);
    if (std::strcmp(argv[i], "--repeat") == 0) options.repeat = std::atoi(argv[i + 1]);
  }
  if (cleave::cuda::device_count() == 0) {
    std::fprintf(stderr, "bench/cuda needs a GPU\n");
    return 2;
  }
  run_threads(1, [&](World& world) {
    kernels_against_copies(options);
    products_against_cublaslt(options, options.mebibytes >= 64 ? 4096 : 64);
    launches(world);
  });
  run_threads(4, [&](World& world) { ranks_on_one_device(world, options); });
#if defined(CLEAVE_HAS_NCCL)
  run_threads(1, nccl_calls);
#endif
}
