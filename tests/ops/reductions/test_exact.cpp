// Exact sums compared with fixed-point numbers that are added bit by bit.
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/reductions/exact_reductions.hpp>

#include "device.hpp"
#include "processes.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

/// A fixed-point number in two's complement, one bit per entry: bit i has weight 2^(i - 2200).
class Bits {
 public:
  /// Adds m · 2^exponent.
  void add(std::int64_t m, int exponent) {
    const bool negative = m < 0;
    int carry = 0;
    auto rest = std::uint64_t(m);
    for (std::size_t i = std::size_t(exponent + 2200); i < bits_.size(); ++i) {
      const int bit = rest != 0 || !negative ? int(rest & 1u) : 1;
      rest = rest >> 1 | (negative ? std::uint64_t(1) << 63 : 0);
      const int sum = bits_[i] + bit + carry;
      bits_[i] = std::int8_t(sum & 1);
      carry = sum >> 1;
    }
  }
  /// Adds a number.
  void add(double x) {
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    add(std::int64_t(std::ldexp(fraction, 53)), exponent - 53);
  }
  void add_product(double x, double y) {
    int e = 0, f = 0;
    const auto a = std::int64_t(std::ldexp(std::frexp(x, &e), 53));
    const auto b = std::int64_t(std::ldexp(std::frexp(y, &f), 53));
    const std::int64_t high = b >> 27, low = b - high * (std::int64_t(1) << 27);
    const std::int64_t a1 = a >> 27, a0 = a - a1 * (std::int64_t(1) << 27);
    const int at = e + f - 106;
    add(a0 * low, at);
    add(a1 * low, at + 27);
    add(a0 * high, at + 27);
    add(a1 * high, at + 54);
  }

  /// The nearest number with that many digits, the last of weight 2^least or more.
  double rounded(int digits, int least) const {
    std::vector<std::int8_t> magnitude = bits_;
    const bool negative = bits_.back() != 0;
    if (negative) {
      int carry = 1;
      for (auto& bit : magnitude) {
        const int sum = 1 - bit + carry;
        bit = std::int8_t(sum & 1);
        carry = sum >> 1;
      }
    }
    int top = int(magnitude.size()) - 1;
    while (top >= 0 && magnitude[std::size_t(top)] == 0) --top;
    if (top < 0) return 0;
    const int last = std::max(top - digits + 1, least + 2200);
    std::int64_t kept = 0;
    for (int i = top; i >= last; --i) kept = 2 * kept + magnitude[std::size_t(i)];
    bool more = false;
    for (int i = 0; i < last - 1; ++i) more = more || magnitude[std::size_t(i)] != 0;
    const bool half = last > 0 && magnitude[std::size_t(last - 1)] != 0;
    if (half && (more || kept % 2 != 0)) ++kept;
    const double value = std::ldexp(double(kept), last - 2200);
    return negative ? -value : value;
  }
  template <class T>
  T as() const {
    if constexpr (std::is_same_v<T, double>) return rounded(53, -1074);
    else if constexpr (std::is_same_v<T, float>) return T(rounded(24, -149));
    else if constexpr (std::is_same_v<T, half>) return T(float(rounded(11, -24)));
    else return T(float(rounded(8, -133)));
  }

 private:
  std::vector<std::int8_t> bits_ = std::vector<std::int8_t>(4600);
};

template <class T>
std::uint64_t bits_of(const T& x) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<std::uint64_t>(x);
  else if constexpr (sizeof(T) == 4) return std::bit_cast<std::uint32_t>(x);
  else return x.bits;
}

/// Numbers of many magnitudes, most of them along with their negatives, so that sums cancel.
template <class T>
Tensor<T, 2> cancelling(index_t rows, index_t cols, unsigned seed, int spread) {
  std::mt19937 random(seed);
  const Tensor<T, 2> x({rows, cols});
  for (index_t i = 0; i < x.size(); ++i) {
    const double fraction = double(random() % 20000) / 10000 - 1;
    x.data()[i] =
        T(accumulator_t<T>(std::ldexp(fraction, int(random() % unsigned(spread)) - spread / 2)));
    if (i > 2 && random() % 3 != 0)
      x.data()[i] = T(accumulator_t<T>(-accumulator_t<T>(x.data()[i - 1 - index_t(random() % 3)])));
  }
  return x;
}

/// Arrays with their exact sums and products.
template <class T>
struct Expected {
  static constexpr index_t rows = 7, cols = 45;

  Tensor<T, 2> a, b;
  T sum{}, mean{};
  std::array<T, std::size_t(rows)> sums{};
  std::array<T, std::size_t(cols)> dots{};

  explicit Expected(int spread)
      : a(cancelling<T>(rows, cols, 1, spread)), b(cancelling<T>(rows, cols, 2, spread)) {
    Bits all;
    for (index_t i = 0; i < rows; ++i) {
      Bits row;
      for (index_t j = 0; j < cols; ++j) row.add(accumulator_t<T>(a(i, j)));
      for (index_t j = 0; j < cols; ++j) all.add(accumulator_t<T>(a(i, j)));
      sums[std::size_t(i)] = row.template as<T>();
    }
    sum = all.template as<T>();
    for (index_t j = 0; j < cols; ++j) {
      Bits products;
      for (index_t i = 0; i < rows; ++i)
        products.add_product(accumulator_t<T>(a(i, j)), accumulator_t<T>(b(i, j)));
      dots[std::size_t(j)] = products.template as<T>();
    }
  }
};

template <class T, class Mesh, class... P>
void check_placed(const Mesh& mesh, const Expected<T>& expected, P... placements) {
  const auto x = distribute_tensor(expected.a, mesh, placements...);
  const auto y = distribute_tensor(expected.b, mesh, placements...);
  CHECK(bits_of(sum<exact>(x).full_tensor().to(Host{}).item()) == bits_of(expected.sum));
  const auto sums = sum<exact>(x, dim<1>{}).full_tensor().to(Host{});
  for (index_t i = 0; i < expected.rows; ++i)
    CHECK(bits_of(sums(i)) == bits_of(expected.sums[std::size_t(i)]));
  const auto dots = dot<exact>(x, y, dim<0>{}).full_tensor().to(Host{});
  for (index_t j = 0; j < expected.cols; ++j)
    CHECK(bits_of(dots(j)) == bits_of(expected.dots[std::size_t(j)]));
}

/// @return the number of combinations of mesh and placement checked
template <class T>
int check_meshes(World& world, const Expected<T>& expected) {
  int checked = 3;
  const int n = world.size();
  const auto line = init_device_mesh<dp>(world, {n}, TestDevice{});
  check_placed(line, expected, Shard<0>{});
  check_placed(line, expected, Shard<1>{});
  check_placed(line, expected, Replicate{});
  for (int rows = 1; rows <= n; ++rows) {
    if (n % rows != 0) continue;
    const auto plane = init_device_mesh<dp, tp>(world, {rows, n / rows}, TestDevice{});
    check_placed(plane, expected, Shard<0>{}, Shard<1>{});
    check_placed(plane, expected, Shard<1>{}, Shard<0>{});
    check_placed(plane, expected, Shard<0>{}, Shard<0>{});
    check_placed(plane, expected, Shard<1>{}, Replicate{});
    check_placed(plane, expected, Replicate{}, Shard<0>{});
    checked += 5;
  }
  return checked;
}

}  // namespace

TEST_CASE("exact sums and products have the bits of the true ones, wherever elements lie") {
  const Expected<double> doubles(200);
  const Expected<float> floats(60);
  const Expected<half> halves(12);
  const Expected<bfloat16> bfloats(60);
  std::atomic<int> checked = 0;
  on_ranks({1, 2, 3, 4, 6}, [&](World& world) {
    const int count = check_meshes(world, doubles) + check_meshes(world, floats) +
                      check_meshes(world, halves) + check_meshes(world, bfloats);
    if (world.rank() == 0) checked += count;
  });
  if (!Processes::get().launched()) CHECK(checked >= 200);
}

TEST_CASE("long rows, of which few blocks can be split, sum up to the true sum") {
  for (const int spread : {2, 40, 300}) {
    const auto a = cancelling<double>(3, 2100, 3, spread),
               b = cancelling<double>(3, 2100, 4, spread);
    const auto f = cancelling<float>(3, 2100, 5, spread > 60 ? 60 : spread);
    Bits sums, products, squares, floats;
    for (index_t i = 0; i < a.size(); ++i) {
      sums.add(a.data()[i]);
      floats.add(f.data()[i]);
      products.add_product(a.data()[i], b.data()[i]);
      squares.add_product(a.data()[i], a.data()[i]);
    }
    CHECK(bits_of(sum<exact>(a).item()) == bits_of(sums.as<double>()));
    CHECK(bits_of(sum<exact>(f).item()) == bits_of(floats.as<float>()));
    CHECK(bits_of(dot<exact>(a, b).item()) == bits_of(products.as<double>()));
    CHECK(bits_of(dot<exact>(a, a).item()) == bits_of(squares.as<double>()));
    const Tensor<double, 2> columns({b.shape()[1], b.shape()[0]});
    columns.copy_(transpose(b));
    const auto transposed = transpose(columns);  // its memory order differs from that of a
    CHECK(bits_of(dot<exact>(a, transposed).item()) == bits_of(products.as<double>()));
    CHECK(bits_of(sum<exact>(transpose(a)).item()) == bits_of(sums.as<double>()));
  }
}

TEST_CASE("products keep their last bits where all others cancel") {
  std::mt19937_64 random(9);
  const auto number = [&](int spread) {  // uses all digits
    const auto digits = std::int64_t(random() >> 11 | std::uint64_t(1) << 52 | 1u);
    return std::ldexp(double(digits), -52 - int(random() % std::uint64_t(spread)));
  };
  for (const int spread : {1, 17, 33, 34, 37, 40, 50, 60})
    for (const bool alone : {false, true}) {  // the largest number among small ones
      constexpr index_t half = 510;           // a block
      const Tensor<double, 1> a({2 * half}), b({2 * half});
      for (index_t i = 0; i < half; ++i) {
        a(i) = alone ? std::ldexp(number(1), i == 0 ? 0 : -spread) : number(spread);
        b(i) = number(1);
        a(2 * half - 1 - i) = i % 100 == 7 ? std::nextafter(-a(i), 0.0) : -a(i);
        b(2 * half - 1 - i) = b(i);
      }
      Bits products, sums;
      for (index_t i = 0; i < 2 * half; ++i) products.add_product(a(i), b(i)), sums.add(a(i));
      CHECK(bits_of(dot<exact>(a, b).item()) == bits_of(products.as<double>()));
      CHECK(bits_of(sum<exact>(a).item()) == bits_of(sums.as<double>()));
    }
}

TEST_CASE("tiny products are kept beside large ones that cancel") {
  std::mt19937_64 random(11);
  const auto number = [&](int exponent) {  // uses all digits
    return std::ldexp(double(random() >> 11 | std::uint64_t(1) << 52 | 1u), exponent - 52);
  };
  for (const int large : {0, -300, -700})
    for (const int tiny : {-750, -800, -850, -885, -960, -1022, -1074, -1100, -1400}) {
      const Tensor<double, 1> a({64}), b({64});
      for (index_t i = 0; i < 32; ++i) {
        a(i) = number(large / 2), b(i) = i % 5 == 4 ? 0 : number(large - large / 2);
        a(63 - i) = -a(i), b(63 - i) = b(i);
      }
      for (const index_t at : {index_t(3), index_t(40)})
        a(at) = number(tiny / 2), b(at) = number(tiny - tiny / 2), b(63 - at) = 0;
      Bits products;
      for (index_t i = 0; i < 64; ++i) products.add_product(a(i), b(i));
      CHECK(bits_of(dot<exact>(a, b).item()) == bits_of(products.as<double>()));
    }
}

TEST_CASE("means and norms are rounded once") {
  const auto of = [](std::vector<double> values) {
    const Tensor<double, 1> x({index_t(values.size())});
    for (std::size_t i = 0; i < values.size(); ++i) x.data()[i] = values[i];
    return x;
  };
  const double least = std::numeric_limits<double>::denorm_min();
  const double most = std::numeric_limits<double>::max();
  CHECK(mean<exact>(of({1e308, 1e308, 1e308})).item() == 1e308);  // the rounded sum is infinite
  CHECK(mean<exact>(of({least, least, 0})).item() == least);      // 2/3 of it, rounded up
  CHECK(mean<exact>(of({least, 0, 0})).item() == 0);
  CHECK(mean<exact>(of({-1, 0, 0})).item() == -1.0 / 3);
  CHECK(norm<exact>(of({std::ldexp(3, 600), -std::ldexp(4, 600)})).item() == std::ldexp(5, 600));
  CHECK(norm<exact>(of({3 * least, 4 * least})).item() == 5 * least);
  CHECK(norm<exact>(of({most})).item() == most);
  CHECK(norm<exact>(of({2})).item() == 2);
  CHECK(norm<exact>(of({1, 1})).item() == std::sqrt(2.0));
  CHECK(dot<exact>(of({1e200, 1e200}), of({1e200, -1e200})).item() == 0);
  CHECK(dot<exact>(of({1e-200, 1}), of({1e-200, 0})).item() == 0);
  CHECK(dot<exact>(of({std::ldexp(1, -600), std::ldexp(1, -600)}),
                   of({std::ldexp(1, -475), std::ldexp(1, -475)}))
            .item() == least);  // two halves
}

TEST_CASE("NaN, infinities, zeros and no elements in exact sums") {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const auto sum_of_two = [](double a, double b) {
    return sum<exact>(Tensor<double, 1>({2}, {a, b})).item();
  };
  CHECK(sum_of_two(infinity, 1) == infinity);
  CHECK(sum_of_two(-infinity, 1) == -infinity);
  CHECK(std::isnan(sum_of_two(infinity, -infinity)));
  CHECK(std::isnan(sum_of_two(nan, 1)));
  CHECK(sum_of_two(1.7e308, 1.7e308) == infinity);
  CHECK(bits_of(sum_of_two(-0.0, -0.0)) == bits_of(0.0));
  CHECK(bits_of(sum_of_two(1.5, -1.5)) == bits_of(0.0));
  CHECK(std::isnan(
      dot<exact>(Tensor<double, 1>({1}, {0.0}), Tensor<double, 1>({1}, {infinity})).item()));
  const Tensor<double, 2> none({0, 3});
  CHECK(sum<exact>(none).item() == 0);
  CHECK(std::isnan(mean<exact>(none).item()));
  CHECK(bits_of(sum<exact>(none, dim<0>{})(2)) == bits_of(0.0));
  CHECK(sum<exact>(none, dim<1>{}).size() == 0);
  on_ranks({2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto sums = [&](double a, double b) {
      return sum<exact>(distribute_tensor(Tensor<double, 1>({2}, {a, b}), mesh, Shard<0>{}))
          .full_tensor()
          .item();
    };
    CHECK(std::isnan(sums(infinity, -infinity)));
    CHECK(sums(-infinity, 3) == -infinity);
    CHECK(std::isnan(sums(nan, 3)));
    CHECK(bits_of(sums(-0.0, -0.0)) == bits_of(0.0));
  });
}

TEST_CASE("exact sums of integers are sums") {
  const Tensor<std::int64_t, 1> x({3}, {1, 2, 3});
  CHECK(sum<exact>(x).item() == 6);
  CHECK(dot<exact>(x, x).item() == 14);
}

TEST_CASE("an exact sum takes one all-reduce of its words") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = ones<double>({64}, mesh, Shard<0>{});
    const auto f = ones<float>({64}, mesh, Shard<0>{});
    CommTrace trace(world);
    CHECK(sum<exact>(x).to_local().item() == 64);
    CHECK(norm<exact>(f).to_local().item() == 8);
    CHECK(mean<exact>(x, dim<0>{}).to_local().item() == 1);
    CHECK(dot<exact>(f, f).to_local().item() == 64);
    CHECK(trace.count() == 4);
    CHECK(trace.count(CollectiveKind::all_reduce) == 4);
    trace.clear();
    const auto rows = ones<double>({64, 2}, mesh, Shard<0>{});
    static_cast<void>(sum<exact>(rows, dim<1>{}));  // whole rows
    CHECK(trace.count() == 0);
  });
}
