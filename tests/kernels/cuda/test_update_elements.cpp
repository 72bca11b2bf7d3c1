#include <memory>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/update_elements_cuda.hpp>
#include <cleave/kernels/host/update_elements.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::kernels;
using namespace cleave::testing;

namespace {

/// Exact for the numbers of `entry`, so that results can be compared bit by bit.
struct AddHalf {
  template <class T>
  CLEAVE_HOST_DEVICE void operator()(T& a, const T& b, T& c) const {
    using A = accumulator_t<T>;
    const A sum = A(a) + A(b) / A(2);
    c = T(A(c) - A(a));
    a = T(sum);
  }
};

struct Double {
  template <class T>
  CLEAVE_HOST_DEVICE void operator()(T& a) const {
    a = T(accumulator_t<T>(a) * 2);
  }
};

struct Twice {
  template <class T>
  CLEAVE_HOST_DEVICE double operator()(const T& a) const {
    return 2 * double(accumulator_t<T>(a));
  }
};

/// n contiguous elements, `first` after the start of their memory.
Place line(index_t n, index_t first) { return Place::of(shape({n}), {}, {}, first); }

}  // namespace

TEST_CASE_TEMPLATE("an update changes every element of its arrays once, and nothing else", T, half,
                   float, double) {
  for (const index_t n : {0, 1, 2, 7, 8, 9, 255, 1000, 5000})
    for (const index_t first : {0, 1, 4}) {
      CAPTURE(n);
      CAPTURE(first);
      const Placed<T> a(line(n, first), 1), b(line(n, 0), 20), c(line(n, first), 300);
      update_elements(On<Cuda>{}, "test", AddHalf{}, n, a.data(), static_cast<const T*>(b.data()),
                      c.data());
      HostArray<T> new_a = a.values(), new_c = c.values();
      const HostArray<T> of_b = b.values();
      for (index_t i = 0; i < n; ++i) AddHalf{}(new_a[i], of_b[i], new_c[i]);
      CHECK(a.wrong(new_a) == 0);
      CHECK(b.wrong(of_b) == 0);
      CHECK(c.wrong(new_c) == 0);
      HostArray<T> by_host = a.values(), by_host_c = c.values();
      update_elements(On<Host>{}, "test", AddHalf{}, n, by_host.elements.get(),
                      static_cast<const T*>(of_b.elements.get()), by_host_c.elements.get());
      CHECK(a.wrong(by_host) == 0);
      CHECK(c.wrong(by_host_c) == 0);
      update_elements(On<Cuda>{}, "test", Double{}, n, a.data());
      for (index_t i = 0; i < n; ++i) Double{}(new_a[i]);
      CHECK(a.wrong(new_a) == 0);
    }
}

TEST_CASE_TEMPLATE("updates of many groups of arrays change each of their elements once", T, half,
                   float, double) {
  struct Arrays {
    index_t n;
    Placed<T> a, b, c;
    Arrays(index_t size, index_t first)
        : n(size), a(line(n, first), 1), b(line(n, 0), 20), c(line(n, first), 300) {}
  };
  constexpr int count = 250;  // more than two launches have
  std::vector<std::unique_ptr<Arrays>> all;
  std::vector<std::tuple<index_t, T*, const T*, T*>> groups;
  for (int k = 0; k < count; ++k) {
    const index_t n = k % 9 == 0 ? 0 : k % 50 == 49 ? 4000 : k % 13;
    const Arrays& of = *all.emplace_back(std::make_unique<Arrays>(n, k % 5));
    groups.emplace_back(n, of.a.data(), of.b.data(), of.c.data());
  }
  update_groups(On<Cuda>{}, "test", AddHalf{}, groups);
  for (const auto& of : all) {
    CAPTURE(of->n);
    HostArray<T> new_a = of->a.values(), new_c = of->c.values();
    const HostArray<T> of_b = of->b.values();
    for (index_t i = 0; i < of->n; ++i) AddHalf{}(new_a[i], of_b[i], new_c[i]);
    CHECK(of->a.wrong(new_a) == 0);
    CHECK(of->b.wrong(of_b) == 0);
    CHECK(of->c.wrong(new_c) == 0);
  }
}

TEST_CASE_TEMPLATE("sums of a function of the elements are added to a number", T, half, float,
                   double) {
  for (const index_t n : {0, 1, 7, 255, 100'000})
    for (const index_t first : {0, 1}) {
      CAPTURE(n);
      CAPTURE(first);
      const Placed<T> x(line(n, first), 3);
      const Placed<double> sums(line(3, 0));
      const HostArray<T> elements = x.values();
      double expected = 0;  // exact: multiples of 1/4 below 2^51
      for (index_t i = 0; i < n; ++i) expected += 2 * double(accumulator_t<T>(elements[i]));
      HostArray<double> after = sums.values();
      after[1] += 2 * expected;
      for (int again = 0; again < 2; ++again)
        add_elements(On<Cuda>{}, "test", Twice{}, n, static_cast<const T*>(x.data()),
                     sums.data() + 1);
      CHECK(sums.wrong(after) == 0);
      double by_host = 1;
      add_elements(On<Host>{}, "test", Twice{}, n, static_cast<const T*>(elements.elements.get()),
                   &by_host);
      CHECK(by_host == 1 + expected);
    }
}
