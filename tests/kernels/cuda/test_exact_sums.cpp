// Exact sums on a GPU compared with the host's; their words do not depend on the order.
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/exact_sums_cuda.hpp>
#include <cleave/kernels/host/exact_sums.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::kernels;
using namespace cleave::testing;

namespace {

/// Numbers of many magnitudes, many of which cancel; infinities and NaNs on request.
template <class T>
Placed<T> summands(const Place& place, unsigned seed, bool specials) {
  std::mt19937 random(seed);
  HostArray<T> buffer(place.size);
  using R = real_t<T>;
  const int spread = sizeof(R) == 8 ? 1900 : sizeof(R) == 4 ? 240 : 20;
  const auto real = [&](index_t i) {
    if (specials && i % 97 == 11) return R(std::numeric_limits<float>::infinity());
    if (specials && i % 89 == 13) return R(-std::numeric_limits<float>::infinity());
    if (specials && i % 101 == 17) return R(std::numeric_limits<float>::quiet_NaN());
    const double digits = double(random()) / 4294967296.0 - 0.5;
    const int exponent = int(random() % unsigned(spread)) - spread / 2;
    return R(accumulator_t<R>(std::ldexp(digits, i % 7 == 0 ? exponent : 0)));
  };
  for (index_t i = 0; i < place.size; ++i) {
    if constexpr (is_complex<T>) buffer[i] = T(real(i), real(i + 1));
    else buffer[i] = real(i);
    if (i > 5 && i % 3 == 0) buffer[i] = T(-buffer[i - 2]);
  }
  return Placed<T>(place, std::move(buffer));
}

/// The array on the host, row-major.
template <class T>
Strided<const T> on_host(const HostArray<T>& values, const Shape& extents) {
  return {values.elements.get(), extents, row_major_strides(extents)};
}

/// Whether a word is a digit of a result marked as not finite; its value is not used.
bool is_void(const HostArray<ExactWord>& words, index_t i, const ExactFormat& format) {
  const index_t number = i / format.words(), at = i % format.words();
  return at < format.digits && words[number * format.words() + format.digits] != 0;
}

/// The number of words and results that differ from the host's.
template <ExactTerms Terms, class T, class... Y>
index_t misadded_exactly(unsigned mask, const ExactEpilogue& epilogue, const Placed<T>& x,
                         const Y&... y) {
  constexpr std::integral_constant<ExactTerms, Terms> terms;
  const Shape& extents = x.place().extents;
  const index_t count = exact_words<T>(Terms);
  Shape of_words;
  for (int d = 0; d < extents.dims; ++d)
    if (!(mask >> d & 1u)) of_words[of_words.dims++] = extents[d];
  const Shape of_results = of_words;
  of_words[of_words.dims++] = count;

  HostArray<ExactWord> words(of_words.product());
  HostArray<T> results(of_results.product());
  const HostArray<T> values[] = {x.values(), y.values()...};
  const auto host = [&](const auto& call) {
    if constexpr (sizeof...(Y) == 0) call(on_host(values[0], extents));
    else call(on_host(values[0], extents), on_host(values[1], extents));
  };
  host([&](const auto&... a) {
    exact_parts(On<Host>{}, Terms, mask, words.elements.get(), a...);
    exact_reduce(On<Host>{}, Terms, mask, epilogue, results.elements.get(), a...);
  });

  const Placed<ExactWord> parts(Place::of(of_words, {}, {}, 1));
  const Placed<T> whole(Place::of(of_results, {}, {}, 3)),
      of_parts(Place::of(of_results, {}, {}, 2));
  exact_parts(On<Cuda>{}, terms, mask, parts.data(), x.read(), y.read()...);
  exact_reduce(On<Cuda>{}, terms, mask, epilogue, whole.data(), x.read(), y.read()...);
  exact_values(On<Cuda>{}, terms, epilogue, parts.read(), of_parts.data());
  const HostArray<ExactWord> found = parts.result();
  index_t different = 0;
  for (index_t i = 0; i < found.size; ++i)
    different += !is_void(words, i, exact_format<T>(Terms)) && found[i] != words[i];
  return different + whole.wrong(results) + of_parts.wrong(results);
}

template <class T>
void check_exact(const Shape& extents, const std::vector<int>& order, unsigned mask,
                 bool specials = false) {
  const auto x = summands<T>(Place::of(extents, order, {}, 1), 3, specials);
  const auto y = summands<T>(Place::of(extents), 4, specials);
  CAPTURE(to_string(extents));
  CAPTURE(mask);
  CHECK(misadded_exactly<ExactTerms::elements>(mask, {}, x) == 0);
  CHECK(misadded_exactly<ExactTerms::elements>(mask, {ExactEpilogue::mean, 7}, x) == 0);
  CHECK(misadded_exactly<ExactTerms::squares>(mask, {ExactEpilogue::root, 1}, x) == 0);
  CHECK(misadded_exactly<ExactTerms::products>(mask, {}, x, y) == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("exact sums have the words and the bits of the host's", T, double, float, half,
                   bfloat16, std::complex<double>, std::complex<float>) {
  for (const unsigned mask : {1u, 2u, 4u, 3u, 6u, 7u})
    check_exact<T>(shape({5, 40, 3}),
                   mask % 2 == 0 ? std::vector<int>{0, 1, 2} : std::vector<int>{2, 0, 1}, mask);
  check_exact<T>(shape({3, 7}), {0, 1}, 0);
  check_exact<T>(shape({30, 20}), {0, 1}, 2, true);
  check_exact<T>(shape({0, 3}), {0, 1}, 1);
  check_exact<T>(shape({0, 3}), {0, 1}, 2);
}

TEST_CASE("several blocks add up one exact sum") {
  check_exact<double>(shape({70000}), {0}, 1);
  check_exact<float>(shape({2, 40001}), {0, 1}, 2);
  check_exact<double>(shape({40001, 2}), {0, 1}, 1, true);
}
