// Kokkos views as tensors, and tensors as views: the same memory both ways.
#include <complex>
#include <optional>

#include <doctest/doctest.h>

#include <cleave/dtensor/from_local.hpp>
#include <cleave/interop/kokkos.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// Kokkos runs from here to the end of the program.
void begin_kokkos() {
  if (!Kokkos::is_initialized()) {
    static const Kokkos::ScopeGuard kokkos(Kokkos::InitArguments{1});
  }
}

template <class Layout>
void check_layout() {
  const Kokkos::View<double**, Layout, Kokkos::HostSpace> view("u", 3, 4);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) view(i, j) = 10 * i + j;
  const Tensor<double, 2> x = kokkos::as_tensor(view);
  CHECK(x.data() == view.data());
  CHECK(x.shape() == std::array<index_t, 2>{3, 4});
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) CHECK(&x(i, j) == &view(i, j));
  const auto back = kokkos::view(x);
  const auto same = kokkos::view_as<Kokkos::View<double**, Layout, Kokkos::HostSpace>>(x);
  CHECK((back.data() == view.data() && same.data() == view.data()));
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) CHECK((&back(i, j) == &view(i, j) && &same(i, j) == &view(i, j)));
}

}  // namespace

TEST_CASE("views of both layouts are tensors of the same memory, and back") {
  begin_kokkos();
  check_layout<Kokkos::LayoutRight>();
  check_layout<Kokkos::LayoutLeft>();
}

TEST_CASE("a tensor keeps the allocation of a view; parts have strides") {
  begin_kokkos();
  std::optional<Tensor<float, 3>> kept;
  {
    const Kokkos::View<float*** [5], Kokkos::LayoutRight, Kokkos::HostSpace> view("v", 2, 3, 4);
    Kokkos::deep_copy(view, 2.5f);
    kept = kokkos::as_tensor(Kokkos::subview(view, Kokkos::ALL, 1, Kokkos::ALL, Kokkos::ALL));
    CHECK(view.use_count() == 2);
    CHECK(&(*kept)(1, 2, 3) == &view(1, 1, 2, 3));
  }
  CHECK(kept->shape() == std::array<index_t, 3>{2, 4, 5});
  CHECK((*kept)(1, 3, 4) == 2.5f);
}

TEST_CASE("complex numbers and views without extents") {
  begin_kokkos();
  const Kokkos::View<Kokkos::complex<double>*, Kokkos::HostSpace> view("c", 2);
  view(1) = Kokkos::complex<double>(1, -2);
  const Tensor<std::complex<double>, 1> x = kokkos::as_tensor(view);
  CHECK(x(1) == std::complex<double>(1, -2));
  const Kokkos::View<int, Kokkos::HostSpace> scalar("s");
  scalar() = 3;
  CHECK(kokkos::as_tensor(scalar).item() == 3);
}

TEST_CASE("a layout that a tensor does not have is an error") {
  const Tensor<double, 2> x({3, 4});
  using Left = Kokkos::View<double**, Kokkos::LayoutLeft, Kokkos::HostSpace>;
  CHECK(contains(error_of([&] { kokkos::view_as<Left>(x); }),
                 "kokkos::view_as: the tensor has the strides [4, 1], not those of LayoutLeft"));
  CHECK(kokkos::view_as<Left>(x.transpose(0, 1)).data() == x.data());
}

TEST_CASE("a kernel of Kokkos works on the part of a rank") {
  begin_kokkos();
  on_ranks({1}, [](World& world) {
    const auto mesh = init_device_mesh<axes::dp>(world, {1});
    const Kokkos::View<double*, Kokkos::HostSpace> view("u", 100);
    const auto x = from_local(kokkos::as_tensor(view), mesh, Shard<0>{});
    const auto own = kokkos::view(x.to_local());
    Kokkos::parallel_for(100, [=](int i) { own(i) = 2 * i; });
    Kokkos::fence();
    for (int i = 0; i < 100; ++i) CHECK(x.to_local()(i) == 2 * i);
  });
}
