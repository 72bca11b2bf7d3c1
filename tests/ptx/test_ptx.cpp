// The interpreter of PTX runs kernels as nvcc compiled them, and finds planted mistakes.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/matrix.hpp>

#include "ptx_grid.hpp"

namespace {

using namespace cleave;

ptx::Module& compiled() {
  static ptx::Module module([] {
    std::ifstream file(CLEAVE_PTX_FILE);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }());
  return module;
}

const ptx::Program& kernel(const std::string& name) {
  for (const std::string& each : compiled().kernels())
    if (each.find(name) != std::string::npos) return compiled().program(each);
  throw ptx::Fault("nvcc compiled no kernel " + name);
}

/// Runs a kernel that may access these arrays.
class Device {
 public:
  template <class T>
  T* add(std::vector<T>& array) {
    const auto begin = reinterpret_cast<std::uintptr_t>(array.data());
    ranges_.push_back({begin, begin + array.size() * sizeof(T)});
    return array.data();
  }

  /// In order, and with blocks and threads in the reverse order. @return the faults
  template <class... A>
  std::string run(const std::string& name, ptx::Extents grid, ptx::Extents block, bool reversed,
                  const A&... arguments) const {
    try {
      const ptx::Program& program = kernel(name);
      const void* pointers[] = {&arguments...};
      ptx::run({.program = &program,
                .grid = grid,
                .block = block,
                .parameters = ptx::pack_parameters(*program.kernel, const_cast<void**>(pointers)),
                .memory = [this](std::uintptr_t address) { return range_of(address); },
                .reorder =
                    [reversed](std::span<std::uint32_t> order) {
                      if (reversed) std::reverse(order.begin(), order.end());
                    }});
    } catch (const ptx::Fault& fault) {
      return fault.what();
    }
    return {};
  }

 private:
  ptx::Range range_of(std::uintptr_t address) const {
    for (const ptx::Range& range : ranges_)
      if (range.holds(address, 1)) return range;
    return {};
  }

  std::vector<ptx::Range> ranges_;
};

bool names(const std::string& fault, const std::string& kernel_name, const std::string& what) {
  const bool found = fault.find(kernel_name + ": block (0, 0, 0), thread (") == 0 &&
                     fault.find(" of the PTX: ") != std::string::npos &&
                     fault.find(what) != std::string::npos;
  if (!found) MESSAGE(fault);
  return found;
}

template <class T>
std::vector<T> counting(std::size_t n, int step) {
  std::vector<T> x;
  for (std::size_t i = 0; i < n; ++i) x.push_back(T(float(int(i * std::size_t(step) % 23) - 11)));
  return x;
}

std::vector<std::int32_t> places(std::size_t n, int count) {
  std::vector<std::int32_t> at;
  for (std::size_t i = 0; i < n; ++i) at.push_back(std::int32_t(i * i % std::size_t(count)));
  return at;
}

template <class T>
void check_scatter(const std::string& name, int n, int count) {
  for (const bool reversed : {false, true}) {
    auto to = counting<T>(std::size_t(count), 5), x = counting<T>(std::size_t(n), 7);
    auto expected = to;
    auto at = places(std::size_t(n), count);
    for (std::size_t i = 0; i < x.size(); ++i)
      expected[std::size_t(at[i])] = T(expected[std::size_t(at[i])] + x[i]);
    Device device;
    T* const to_begin = device.add(to);
    std::int32_t* const at_begin = device.add(at);
    T* const x_begin = device.add(x);
    CHECK(device.run(name, {unsigned(n + 63) / 64, 1, 1}, {64, 1, 1}, reversed, to_begin, at_begin,
                     x_begin, n) == "");
    CHECK(std::memcmp(to.data(), expected.data(), to.size() * sizeof(T)) == 0);
  }
}

TEST_CASE("a product of integers as compiled for a device has the values of three loops") {
  for (const bool reversed : {false, true}) {
    const index_t rows = 70, cols = 90, depth = 19, batches = 3;
    auto a = counting<std::int64_t>(std::size_t(batches * rows * depth), 5);
    auto b = counting<std::int64_t>(std::size_t(depth * cols), 3);
    std::vector<std::int64_t> c(std::size_t(batches * rows * cols), -1), expected(c.size());
    for (index_t n = 0; n < batches; ++n)
      for (index_t i = 0; i < rows; ++i)
        for (index_t j = 0; j < cols; ++j)
          for (index_t k = 0; k < depth; ++k)
            expected[std::size_t((n * rows + i) * cols + j)] +=
                a[std::size_t((n * rows + i) * depth + k)] * b[std::size_t(k * cols + j)];
    Device device;
    const kernels::Matrix<const std::int64_t> left{device.add(a), rows, depth, depth, 1};
    const kernels::Matrix<const std::int64_t> right{device.add(b), depth, cols, cols, 1};
    const kernels::Matrix<std::int64_t> product{device.add(c), rows, cols, cols, 1};
    const kernels::Batches each{batches, rows * depth, 0, rows * cols};
    // 2 x 2 tiles of 64 x 64; two blocks share three products
    CHECK(device.run("tiled_gemm_kernel", {4, 2, 1}, {256, 1, 1}, reversed, left, right, product,
                     each, cuda::detail::FastDivision(2), std::uint32_t(2)) == "");
    CHECK(c == expected);
  }
}

TEST_CASE("atomic additions lose nothing") {
  check_scatter<std::complex<double>>("scatter_complex", 130, 5);
}

TEST_CASE("threads of a warp exchange values") {
  auto x = counting<std::int32_t>(64, 5);
  std::vector<std::int32_t> out(64);
  Device device;
  std::int32_t *const out_begin = device.add(out), *const x_begin = device.add(x);
  CHECK(device.run("warp_sums", {1, 1, 1}, {64, 1, 1}, false, out_begin, x_begin) == "");
  for (std::size_t i = 0; i < 64; ++i) {
    std::int32_t sum = 0;
    for (std::size_t k = 0; k < 32; ++k) sum += x[i / 32 * 32 + k];
    CHECK(out[i] == sum);
  }
}

TEST_CASE("complex numbers are multiplied; without the imaginary parts the values differ") {
  using Complex = std::complex<double>;
  std::vector<Complex> a, b, out(32);
  for (int i = 0; i < 32; ++i) {
    a.emplace_back(i - 3.5, i % 5);
    b.emplace_back(i % 7, 2.25 - i);
  }
  const auto wrong = [&](const char* name) {
    Device device;
    Complex *const to = device.add(out), *const left = device.add(a), *const right = device.add(b);
    CHECK(device.run(name, {1, 1, 1}, {32, 1, 1}, false, to, left, right) == "");
    int count = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      const double re = a[i].real() * b[i].real() - a[i].imag() * b[i].imag();
      const double im = a[i].real() * b[i].imag() + a[i].imag() * b[i].real();
      count += std::abs(out[i].real() - re) + std::abs(out[i].imag() - im) > 1e-12;
    }
    return count;
  };
  CHECK(wrong("multiply") == 0);
  CHECK(wrong("planted_product") > 0);
}

TEST_CASE("an access that is not aligned to its size is a fault") {
  auto from = counting<float>(140, 3);
  std::vector<float> to(128);
  Device device;
  float *const to_begin = device.add(to), *const from_begin = device.add(from);
  CHECK(device.run("copy_packs", {1, 1, 1}, {32, 1, 1}, false, to_begin, from_begin, 4) == "");
  CHECK(std::equal(to.begin(), to.end(), from.begin() + 4));
  CHECK(names(device.run("copy_packs", {1, 1, 1}, {32, 1, 1}, false, to_begin, from_begin, 1),
              "copy_packs", "not aligned to its size"));
}

TEST_CASE("a missing barrier and a barrier that threads skip are faults") {
  auto x = counting<std::int32_t>(128, 3);
  std::vector<std::int32_t> expected(x.rbegin(), x.rend());
  Device device;
  std::int32_t* const begin = device.add(x);
  for (const bool reversed : {false, true}) {
    CHECK(names(device.run("reverse_block", {1, 1, 1}, {128, 1, 1}, reversed, begin, false),
                "reverse_block", "a race in shared memory"));
    CHECK(names(device.run("split_barrier", {1, 1, 1}, {128, 1, 1}, reversed, begin),
                "split_barrier", "64 threads of a block wait at a barrier that 64 of its threads"));
  }
  x.assign(expected.rbegin(), expected.rend());
  CHECK(device.run("reverse_block", {1, 1, 1}, {128, 1, 1}, false, begin, true) == "");
  CHECK(x == expected);
}

TEST_CASE("an index past the end of an array is a fault") {
  std::vector<std::int32_t> x(100);
  Device device;
  std::int32_t* const begin = device.add(x);
  CHECK(device.run("fill", {1, 1, 1}, {100, 1, 1}, false, begin, 100, 7) == "");
  CHECK(x == std::vector<std::int32_t>(100, 7));
  CHECK(names(device.run("fill", {1, 1, 1}, {128, 1, 1}, false, begin, 100, 7), "fill",
              "thread (100, 0, 0)"));
}

TEST_CASE("an instruction that the interpreter lacks is a fault, not a guess") {
  std::vector<std::int64_t> out(1);
  Device device;
  std::int64_t* const begin = device.add(out);
  const std::string fault = device.run("clock_of", {1, 1, 1}, {1, 1, 1}, false, begin);
  CHECK(fault.find("clock64 is outside the interpreted subset of PTX") != std::string::npos);
}

}  // namespace
