// Stencils on local tensors against naive loops.
#include <complex>

#include "../naive_stencils.hpp"
#include "errors.hpp"

namespace stencil_tests {

using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

/// A stencil in one dimension, with all kinds of edges, for short and long rows.
template <int Lo, int Hi, class T, class E>
void check_line(const E& of) {
  using S = std::conditional_t<is_complex<T>, DeclaredLine<Lo, Hi>, Line<Lo, Hi>>;
  const BeyondAll beyond = beyond_all(of, 1);
  for (const index_t n : {1, 2, 3, 5, 8, 21, 70}) {
    const index_t begin = beyond[0][0].kind == '-' ? -reach_of<Line<Lo, Hi>>.lo[0] : 0;
    const index_t end = beyond[0][1].kind == '-' ? n - reach_of<Line<Lo, Hi>>.hi[0] : n;
    if (end < begin) continue;
    if ((begin > 0 || end < n) && n <= 5) {  // may mirror what does not exist
      if (beyond[0][0].kind == '-' ? n <= Hi : n <= -Lo) continue;
    }
    const auto u = numbered<T>({n});
    const auto expected =
        naive_results<T>(Line<Lo, Hi>{}, {n}, std::array{elements_of(u)}, beyond, {begin}, {end});
    CAPTURE(n);
    CHECK(same_bits(apply(S{}, u.to(TestDevice{}), of), expected));
  }
}
template <int Lo, int Hi>
void check_line_with_all_edges() {
  CAPTURE(Lo);
  CAPTURE(Hi);
  check_line<Lo, Hi, double>(edges(periodic));
  const std::tuple kinds{dirichlet(3.0), dirichlet(by_position), zero, neumann, mirror, none};
  std::apply(
      [&](const auto&... low) {
        (check_line<Lo, Hi, double>(edges(low)), ...);
        (check_line<Lo, Hi, double>(edges(sides(low, mirror))), ...);
        (check_line<Lo, Hi, double>(edges(sides(dirichlet(2), low))), ...);
        (check_line<Lo, Hi, double>(edges(sides(none, low))), ...);
      },
      kinds);
}

template <class S, class T, std::size_t Rank, class E>
void check_whole(const S& stencil, const index_t (&extents)[Rank], const E& of) {
  const auto u = numbered<T>(extents);
  const Indices shape(extents, extents + Rank);
  const auto expected = naive_results<T>(stencil, shape, std::array{elements_of(u)},
                                         beyond_all(of, int(Rank)), Indices(Rank, 0), shape);
  const auto x = u.to(TestDevice{});
  CHECK(same_bits(apply(stencil, x, of), expected));
  const Tensor<T, int(Rank), TestDevice> target(u.shape());
  apply(out(target), stencil, x, of);
  CHECK(same_bits(target, expected));
}

}  // namespace

TEST_CASE("a stencil in one dimension is right for all edges, with reach 0 to 5 at each side") {
  check_line_with_all_edges<0, 0>();
  check_line_with_all_edges<-1, 1>();
  check_line_with_all_edges<-5, 0>();
  check_line_with_all_edges<-2, 4>();
}

TEST_CASE("elements of all types are computed") {
  check_line<-1, 2, float>(edges(periodic));
  check_line<-1, 2, half>(edges(sides(dirichlet(2), neumann)));
  check_line<-1, 2, bfloat16>(edges(mirror));
  check_line<-1, 2, std::int32_t>(edges(zero));
  check_line<-1, 2, std::complex<double>>(edges(dirichlet(2.0)));
  check_line<-1, 2, std::complex<float>>(edges(periodic));
}

TEST_CASE("a stencil in two dimensions is right at edges and corners") {
  const std::tuple all{edges(periodic),
                       edges(dirichlet(by_position)),
                       edges(periodic, dirichlet(1.0)),
                       edges(sides(dirichlet(5), neumann), sides(mirror, dirichlet(by_position))),
                       edges(neumann, periodic),
                       edges(mirror)};
  std::apply(
      [](const auto&... of) {
        const auto check = [](const auto& e) {
          check_whole<Heat, double>({}, {4, 5}, e);
          check_whole<Heat, double>({}, {1, 40}, e);
          check_whole<Nine, double>({}, {5, 3}, e);
          check_whole<Nine, double>({}, {1, 1}, e);
          check_whole<Unequal, double>({}, {7, 23}, e);
          check_whole<Unequal, double>({}, {2, 2}, e);
        };
        (check(of), ...);
      },
      all);
}

TEST_CASE("a stencil in three dimensions is right") {
  check_whole<Seven, double>({}, {4, 5, 18}, edges(periodic));
  check_whole<Position, double>({}, {4, 3, 70}, edges(zero));
  check_whole<Seven, double>({}, {3, 1, 35}, edges(neumann, zero, dirichlet(by_position)));
}

TEST_CASE("without edges the result has the elements whose neighbours exist") {
  const auto u = numbered<double>({6, 9});
  const auto v = apply(Unequal{}, u.to(TestDevice{}));
  CHECK(v.shape() == std::array<index_t, 2>{1, 6});
  CHECK(same_bits(
      v, naive_results<double>(Unequal{}, {6, 9}, std::array{elements_of(u)}, {}, {3, 2}, {4, 8})));
  CHECK(apply(Unequal{}, numbered<double>({5, 9})).empty());
  CHECK(contains(
      error_of([] { apply(Line<-1, 5>{}, numbered<double>({5}), edges(sides(none, mirror))); }),
      "stencil: dimension 0 has fewer elements than the stencil mirrors, and an edge "
      "`none`"));
  CHECK(contains(error_of([] { apply(Unequal{}, numbered<double>({4, 9})); }),
                 "stencil: dimension 0 with edges `none` has fewer elements than the stencil "
                 "reads"));
}

TEST_CASE("a stencil reads several fields, numbers and its position, and returns several results") {
  const auto vx = numbered<double>({5, 6}, 1), vy = numbered<double>({5, 6}, 2),
             p = numbered<double>({5, 6}, 3);
  const std::array fields{elements_of(vx), elements_of(vy), elements_of(p)};
  const BeyondAll beyond = beyond_all(edges(periodic), 2);
  const auto x_of = [](const auto&... f) { return std::get<0>(Velocity{}(f...)); };
  const auto y_of = [](const auto&... f) { return std::get<1>(Velocity{}(f...)); };
  const auto x = naive_results<double>(x_of, {5, 6}, fields, beyond, {0, 0}, {5, 6});
  const auto y = naive_results<double>(y_of, {5, 6}, fields, beyond, {0, 0}, {5, 6});
  const auto dx = vx.to(TestDevice{}), dy = vy.to(TestDevice{}), dp = p.to(TestDevice{});
  const auto [a, b] = apply(Velocity{}, dx, dy, dp, edges(periodic));
  CHECK(same_bits(a, x));
  CHECK(same_bits(b, y));
  apply(out(dx, dy), Velocity{}, dx, dy, dp, edges(periodic));  // in place: only p has neighbours
  CHECK(same_bits(dx, x));
  CHECK(same_bits(dy, y));

  const auto u = numbered<float>({3, 4});
  const auto s = apply(Source{}, u.to(TestDevice{}), 2.0f, edges(zero)).to(Host{});
  CHECK(s(0, 0) == 2 * u(0, 1));
  CHECK(s(2, 1) == 2 * u(2, 2) + 201);
  CHECK(s(1, 3) == 103);
}

TEST_CASE("fields and targets may have any strides") {
  const auto t = numbered<double>({6, 5}).to(TestDevice{}).transpose(0, 1);
  const auto expected = naive_results<double>(Heat{}, {5, 6}, std::array{elements_of(t)},
                                              beyond_all(edges(neumann), 2), {0, 0}, {5, 6});
  CHECK(same_bits(apply(Heat{}, t, edges(neumann)), expected));
  const Tensor<double, 2, TestDevice> memory({8, 20});
  memory.fill_(-1);
  const auto inner =
      memory[{Shape(std::array<index_t, 2>{1, 2}), Shape(std::array<index_t, 2>{6, 8})}];
  apply(out(inner), Heat{}, t, edges(neumann));
  CHECK(same_bits(inner, expected));
  CHECK(elements_of(memory)[2] == -1);
  CHECK(elements_of(memory)[20 + 8] == -1);
  const Tensor<double, 2, TestDevice> turned({6, 5});
  apply(out(turned.transpose(0, 1)), Heat{}, t, edges(neumann));
  CHECK(same_bits(turned.transpose(0, 1), expected));
}

TEST_CASE("wrong extents and targets are errors") {
  const auto u = numbered<double>({4, 5}), longer = numbered<double>({4, 6});
  CHECK(contains(error_of([&] { apply(Weighted{}, u, longer, edges(zero, periodic)); }),
                 "stencil: dimension 1 is periodic, and the fields' extents 5 and 6 differ"));
  CHECK(contains(error_of([&] { apply(out(longer), Heat{}, u, edges(zero)); }),
                 "stencil: extents differ: the result has [4, 5]"));
  CHECK(contains(error_of([&] { apply(out(u), Heat{}, u, edges(zero)); }),
                 "stencil: the target shares elements with a field whose neighbours are read"));
  // fields of other extents are read where their own edges are
  const auto expected = apply(Weighted{}, u, longer.slice(1, 0, 5), edges(zero));
  const auto staggered = apply(Weighted{}, u, longer, edges(zero));
  CHECK(staggered(1, 2) == expected(1, 2));
  CHECK(staggered(1, 4) == longer(1, 4) * u(2, 4) + longer(2, 5) * u(1, 3));
}

}  // namespace stencil_tests
