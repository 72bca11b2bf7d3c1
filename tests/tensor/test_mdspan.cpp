#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include <cleave/tensor/mdspan.hpp>

using namespace cleave;

namespace {

// A minimal view in the style of std::mdspan: extents, a layout, a pointer.
constexpr std::size_t dynamic = std::size_t(-1);

template <class Index, std::size_t... E>
struct Extents {
  using index_type = Index;
  static constexpr std::size_t rank() { return sizeof...(E); }
  static constexpr std::size_t rank_dynamic() { return ((E == dynamic) + ... + 0u); }
  static constexpr std::size_t static_extent(std::size_t d) {
    return std::array<std::size_t, sizeof...(E)>{E...}[d];
  }
  template <class... I>
    requires(sizeof...(I) == sizeof...(E))
  explicit Extents(I... all) : values{Index(all)...} {}
  std::array<Index, sizeof...(E)> values;
};

struct Right {
  template <class E>
  struct mapping {
    using extents_type = E;
    explicit mapping(const E& e) : extents(e) {}
    auto stride(std::size_t d) const {
      typename E::index_type step = 1;
      for (std::size_t i = d + 1; i < E::rank(); ++i) step *= extents.values[i];
      return step;
    }
    E extents;
  };
};

struct Left {
  template <class E>
  struct mapping {
    using extents_type = E;
    explicit mapping(const E& e) : extents(e) {}
    auto stride(std::size_t d) const {
      typename E::index_type step = 1;
      for (std::size_t i = 0; i < d; ++i) step *= extents.values[i];
      return step;
    }
    E extents;
  };
};

struct Strided {
  template <class E>
  struct mapping {
    using extents_type = E;
    mapping(const E& e, const std::array<typename E::index_type, E::rank()>& s)
        : extents(e), steps(s) {}
    auto stride(std::size_t d) const { return steps[d]; }
    const auto& strides() const { return steps; }
    E extents;
    std::array<typename E::index_type, E::rank()> steps;
  };
};

template <class T, class E, class Layout>
struct Mdspan {
  using element_type = T;
  using extents_type = E;
  using mapping_type = typename Layout::template mapping<E>;
  static constexpr std::size_t rank() { return E::rank(); }

  Mdspan(T* data, const mapping_type& mapping) : data_(data), mapping_(mapping) {}
  auto extent(std::size_t d) const { return mapping_.extents.values[d]; }
  auto stride(std::size_t d) const { return mapping_.stride(d); }
  T* data_handle() const { return data_; }

 private:
  T* data_;
  mapping_type mapping_;
};

template <class T, class Layout, class Index = int>
using Matrix = Mdspan<T, Extents<Index, dynamic, dynamic>, Layout>;

template <class Layout>
Matrix<float, Layout> matrix(float* data, int rows, int cols) {
  using View = Matrix<float, Layout>;
  return View(data, typename View::mapping_type(typename View::extents_type(rows, cols)));
}

}  // namespace

TEST_CASE("views of both layouts become tensors on the same elements") {
  std::array<float, 6> data{0, 1, 2, 3, 4, 5};
  const auto right = as_tensor(matrix<Right>(data.data(), 2, 3));
  const auto left = as_tensor(matrix<Left>(data.data(), 2, 3));
  CHECK(right.shape() == std::array<index_t, 2>{2, 3});
  CHECK(right(1, 0) == 3);
  CHECK(left(1, 0) == 1);
  CHECK(left(0, 2) == 4);
  left(1, 2) = 50;
  CHECK(data[5] == 50);
}

TEST_CASE("a strided view keeps its strides") {
  std::array<double, 24> data{};
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = double(i);
  using View = Matrix<double, Strided, std::int64_t>;
  const View view(data.data() + 1, {View::extents_type(3, 2), {8, 4}});
  const auto x = as_tensor(view);
  CHECK(x.strides() == std::array<index_t, 2>{8, 4});
  CHECK(x(2, 1) == 21);
}

TEST_CASE("a tensor on a view holds the owner of the elements until the last handle is gone") {
  int deleted = 0;
  {
    auto* data = new float[6]{};
    std::shared_ptr<void> owner(data, [&](void* p) {
      delete[] static_cast<float*>(p);
      ++deleted;
    });
    auto x = as_tensor(matrix<Right>(data, 2, 3), std::move(owner));
    const auto row = x.select(0, 1);
    x = {};
    CHECK(deleted == 0);
    CHECK(row(2) == 0);
  }
  CHECK(deleted == 1);
}

TEST_CASE("views of const elements are copied") {
  const std::array<float, 6> data{0, 1, 2, 3, 4, 5};
  using View = Matrix<const float, Left>;
  const View view(data.data(), View::mapping_type(View::extents_type(2, 3)));
  const Tensor<float, 2> x = to_tensor(view);
  CHECK(x.contiguous());
  CHECK(x(0, 1) == 2);
  CHECK(x(1, 0) == 1);
  CHECK(x(1, 2) == 5);
}

TEST_CASE("a tensor becomes a view of any layout that fits, on the same elements") {
  const Tensor<float, 2> x({2, 3}, {0, 1, 2, 3, 4, 5});
  const auto right = to_mdspan<Matrix<float, Right>>(x);
  CHECK(right.data_handle() == x.data());
  CHECK(right.extent(1) == 3);
  CHECK(right.stride(0) == 3);
  const auto left = to_mdspan<Matrix<const float, Left>>(x.transpose(0, 1));
  CHECK(left.extent(0) == 3);
  CHECK(left.stride(1) == 3);
  const auto strided = to_mdspan<Matrix<float, Strided>>(x.slice(1, 1, 3));
  CHECK(strided.data_handle() == x.data() + 1);
  CHECK(strided.extent(1) == 2);
  CHECK(strided.stride(0) == 3);
}

TEST_CASE("a layout that puts the elements elsewhere is refused") {
  const Tensor<float, 2> x({2, 3});
  CHECK_THROWS_WITH_AS((to_mdspan<Matrix<float, Left>>(x)),
                       "to_mdspan: the tensor's strides [3, 1] are not those of the view's layout, "
                       "[1, 2] [shapes [2, 3]]",
                       Error);
  CHECK_THROWS_WITH_AS((to_mdspan<Matrix<float, Right>>(x.slice(1, 0, 2))),
                       "to_mdspan: the tensor's strides [3, 1] are not those of the view's layout, "
                       "[2, 1] [shapes [2, 2]]",
                       Error);
  CHECK_NOTHROW(to_mdspan<Matrix<float, Right>>(x.slice(0, 1, 2)));         // one row has no stride
  CHECK_NOTHROW(to_mdspan<Matrix<float, Left>>(Tensor<float, 2>({0, 3})));  // nor have no rows
}

TEST_CASE("static extents and narrow index types are compared, not trusted") {
  using Fixed = Mdspan<float, Extents<int, dynamic, 3>, Right>;
  CHECK(to_mdspan<Fixed>(Tensor<float, 2>({2, 3})).extent(1) == 3);
  CHECK_THROWS_WITH_AS((to_mdspan<Fixed>(Tensor<float, 2>({2, 4}))),
                       "to_mdspan: dimension 1 of the view has the extent 3 [shapes [2, 4]]",
                       Error);
  using Narrow = Matrix<std::uint8_t, Right, std::int8_t>;
  CHECK_THROWS_WITH_AS((to_mdspan<Narrow>(Tensor<std::uint8_t, 2>({1, 200}))),
                       "to_mdspan: the view's index type is too small [shapes [1, 200]]", Error);
}

TEST_CASE("views without dimensions are scalars") {
  std::complex<double> value{1, 2};
  using View = Mdspan<std::complex<double>, Extents<int>, Right>;
  const View view(&value, View::mapping_type(View::extents_type()));
  CHECK(as_tensor(view).item() == value);
  CHECK(to_mdspan<View>(as_tensor(view)).data_handle() == &value);
}

TEST_CASE("types without the required members or element type are not views") {
  static_assert(MdspanLike<Matrix<float, Right>> && MdspanLike<Matrix<const bool, Strided>>);
  static_assert(!MdspanLike<Matrix<long double, Right>> && !MdspanLike<Tensor<float, 2>>);
  CHECK(!MdspanLike<std::array<float, 3>>);
}
