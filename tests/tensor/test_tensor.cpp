#include <array>
#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/tensor/tensor.hpp>

#include "cases.hpp"
#include "errors.hpp"
#include "sanitizers.hpp"

using namespace cleave;
using cleave::testing::error_of;
using cleave::testing::skip;

namespace {

// 0, 1, 2, .. in row-major order
template <int Rank>
Tensor<std::int32_t, Rank> counted(const std::array<index_t, std::size_t(Rank)>& extents) {
  Tensor<std::int32_t, Rank> x(extents);
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = std::int32_t(i);
  return x;
}

}  // namespace

TEST_CASE("a fresh tensor is row-major, aligned and its own") {
  const Tensor<float, 3> x({5, 6, 7});
  CHECK(x.shape() == std::array<index_t, 3>{5, 6, 7});
  CHECK(x.strides() == std::array<index_t, 3>{42, 7, 1});
  CHECK(x.extent(1) == 6);
  CHECK(x.extent(-1) == 7);
  CHECK(x.size() == 210);
  CHECK(x.contiguous());
  CHECK(!x.shared());
  CHECK(reinterpret_cast<std::uintptr_t>(x.data()) % 64 == 0);
}

TEST_CASE("copies of a tensor share the elements, a clone has its own") {
  const Tensor<float, 2> x({2, 2}, {1, 2, 3, 4});
  const Tensor<float, 2> handle = x, copy = x.clone();
  CHECK(x.shared());
  CHECK(!copy.shared());
  x(0, 1) = 20;
  CHECK(handle(0, 1) == 20);
  CHECK(copy(0, 1) == 2);
}

TEST_CASE_TEMPLATE("every element type is stored, filled and read", T, bool, std::int8_t,
                   std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, half,
                   bfloat16, float, double, std::complex<float>, std::complex<double>) {
  const Tensor<T, 2> x({3, 4});
  x.fill_(T(1));
  x.slice(1, 1, 3).fill_(T(0));
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 4; ++j) CHECK(x(i, j) == T(j == 1 || j == 2 ? 0 : 1));
  CHECK(x.view().dtype == dtype_of<T>());
  CHECK(x.view().bytes() == 12 * index_t(sizeof(T)));
  const Tensor<T, 2> y = x.transpose(0, 1).clone();
  CHECK(y(3, 0) == T(1));
  CHECK(y(2, 1) == T(0));
}

TEST_CASE("tensors without elements have a shape, and nothing is allocated for them") {
  const Tensor<double, 2> none;
  CHECK(none.empty());
  CHECK(none.shape() == std::array<index_t, 2>{0, 0});
  const Tensor<double, 3> x({4, 0, 3});
  CHECK(x.empty());
  CHECK(x.data() == nullptr);
  CHECK(x.contiguous());
  CHECK(x.transpose(0, 2).contiguous());
  CHECK(x.clone().shape() == x.shape());
  CHECK(x.slice(0, 2, 4).shape() == std::array<index_t, 3>{2, 0, 3});
  CHECK(x.reshape(std::array<index_t, 1>{0}).size() == 0);
  CHECK(x.select(0, 1).shape() == std::array<index_t, 2>{0, 3});
  x.fill_(1);
  x.copy_(Tensor<double, 3>({4, 0, 3}));
}

TEST_CASE("a scalar has one element") {
  const Tensor<double, 0> x({}, {2.5});
  CHECK(x.size() == 1);
  CHECK(x() == 2.5);
  CHECK(x.item() == 2.5);
  CHECK(x.clone().item() == 2.5);
  CHECK(x.unsqueeze(0).shape() == std::array<index_t, 1>{1});
  CHECK(Tensor<double, 0>().size() == 1);
  x.fill_(3);
  CHECK(x.item() == 3);
}

TEST_CASE("slices and selections are views with the right elements") {
  const auto x = counted<3>({4, 5, 6});
  const auto part = x.slice(1, 2, 5);
  CHECK(part.shape() == std::array<index_t, 3>{4, 3, 6});
  CHECK(!part.contiguous());
  const auto plane = x.select(-1, 3);
  CHECK(plane.shape() == std::array<index_t, 2>{4, 5});
  for (index_t i = 0; i < 4; ++i)
    for (index_t j = 0; j < 5; ++j) {
      CHECK(plane(i, j) == i * 30 + j * 6 + 3);
      if (j < 3) CHECK(part(i, j, 5) == i * 30 + (j + 2) * 6 + 5);
    }
  CHECK(x.slice(0, 4, 4).empty());
  CHECK(x.slice(0, 1, 3).contiguous());
  CHECK(x.select(0, 1).select(0, 2).select(0, 3).item() == 45);
  plane(0, 0) = -1;
  CHECK(x(0, 0, 3) == -1);
}

TEST_CASE("a view keeps the storage alive") {
  auto x = counted<2>({3, 3});
  const auto row = x.select(0, 2);
  x = {};
  CHECK(row(1) == 7);
  CHECK(!row.shared());
}

TEST_CASE("permuted and transposed dimensions have exchanged indices") {
  const auto x = counted<3>({2, 3, 4});
  const auto p = x.permute({2, 0, -2});
  const auto t = x.transpose(0, -1);
  CHECK(p.shape() == std::array<index_t, 3>{4, 2, 3});
  CHECK(t.shape() == std::array<index_t, 3>{4, 3, 2});
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 3; ++j)
      for (index_t k = 0; k < 4; ++k) {
        CHECK(p(k, i, j) == x(i, j, k));
        CHECK(t(k, j, i) == x(i, j, k));
        CHECK(p.clone()(k, i, j) == x(i, j, k));
      }
  CHECK(p.data() == x.data());
}

TEST_CASE("new dimensions have extent 1, wherever they are") {
  const auto x = counted<2>({2, 3});
  CHECK(x.unsqueeze(0).shape() == std::array<index_t, 3>{1, 2, 3});
  CHECK(x.unsqueeze(1).shape() == std::array<index_t, 3>{2, 1, 3});
  CHECK(x.unsqueeze(2).shape() == std::array<index_t, 3>{2, 3, 1});
  CHECK(x.unsqueeze(-1).shape() == std::array<index_t, 3>{2, 3, 1});
  CHECK(x.unsqueeze(-3).shape() == std::array<index_t, 3>{1, 2, 3});
  CHECK(x.unsqueeze(1).contiguous());
  CHECK(x.unsqueeze(1)(1, 0, 2) == 5);
}

TEST_CASE("a reshaped tensor has the same elements in row-major order") {
  const auto x = counted<2>({4, 6});
  const auto y = x.reshape(std::array<index_t, 3>{2, 3, 4});
  CHECK(y(1, 2, 3) == 23);
  CHECK(y(1, 0, 0) == 12);
  CHECK(y.data() == x.data());
  CHECK(x.slice(0, 1, 2).reshape(std::array<index_t, 1>{6})(0) == 6);
  CHECK(x.slice(0, 0, 1).slice(1, 3, 4).reshape(std::array<index_t, 0>{}).item() == 3);
}

TEST_CASE("a box cuts all dimensions at once") {
  const auto x = counted<2>({4, 6});
  const Box box{Shape(std::array<index_t, 2>{1, 2}), Shape(std::array<index_t, 2>{3, 6})};
  CHECK(x[box].shape() == std::array<index_t, 2>{2, 4});
  CHECK(x[box](1, 3) == 17);
  const Box empty{Shape(std::array<index_t, 2>{9, 2}), Shape(std::array<index_t, 2>{9, 4})};
  CHECK(x[empty].shape() == std::array<index_t, 2>{0, 2});
  const ConstView view = x.view();
  CHECK(*static_cast<const std::int32_t*>(view[box].data) == 8);
  CHECK(view[box].extents == box.extents());
}

TEST_CASE("elements are copied between views of different strides") {
  const auto x = counted<2>({3, 2});
  const Tensor<std::int32_t, 2> y({2, 3});
  y.copy_(x.transpose(0, 1));
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 2; ++j) CHECK(y(j, i) == x(i, j));
}

TEST_CASE("a user's buffer is adopted without a copy, with or without strides") {
  std::vector<double> buffer{0, 1, 2, 3, 4, 5, 6, 7};
  const auto x = Tensor<double, 2>::adopt(buffer.data(), {2, 3});
  CHECK(x(1, 2) == 5);
  x(1, 2) = 50;
  CHECK(buffer[5] == 50);
  const auto columns = Tensor<double, 2>::adopt(buffer.data(), {3, 2}, {1, 4});
  CHECK(columns(2, 1) == 6);
  const auto repeated = Tensor<double, 2>::adopt(buffer.data(), {3, 2}, {0, 1});
  CHECK(repeated.clone()(2, 1) == 1);
  CHECK(!x.shared());
}

TEST_CASE("an adopted buffer's deleter runs once, after the last handle") {
  int deleted = 0;
  {
    auto* data = new float[4]{1, 2, 3, 4};
    auto x = Tensor<float, 1>::adopt(data, {4}, std::shared_ptr<void>(data, [&](void* p) {
                                       delete[] static_cast<float*>(p);
                                       ++deleted;
                                     }));
    auto view = x.slice(0, 1, 3).unsqueeze(0).transpose(0, 1).reshape(std::array<index_t, 1>{2});
    x = Tensor<float, 1>();
    CHECK(deleted == 0);
    CHECK(view(1) == 3);
  }
  CHECK(deleted == 1);
}

TEST_CASE("an invalid tensor is an error that gives the reason") {
  using Matrix = Tensor<float, 2>;
  CHECK(error_of([] { Matrix({3, -1}); }) == "Tensor: extent -1 of dimension 1 is negative");
  CHECK(error_of([] { Matrix({index_t{1} << 40, index_t{1} << 40}); }) ==
        "Tensor: the product of the extents does not fit in index_t");
  CHECK(error_of([] { Tensor<float, 3>({0, index_t{1} << 40, index_t{1} << 40}); }) ==
        "Tensor: the product of the extents does not fit in index_t");
  CHECK(error_of([] { Matrix({2, 2}, {1, 2, 3}); }) ==
        "Tensor: 3 values for 4 elements [shapes [2, 2]]");
  CHECK(error_of([] { Matrix::adopt(nullptr, {2, 2}); }) ==
        "Tensor: a null buffer has no elements to adopt [shapes [2, 2]]");
  CHECK(error_of([] { Matrix::adopt(nullptr, {2, -2}, {2, 1}); }) ==
        "Tensor: extent -2 of dimension 1 is negative");
  CHECK(Matrix::adopt(nullptr, {0, 2}).empty());
}

TEST_CASE("an allocation larger than the memory is an Error like others") {
#if defined(CLEAVE_TEST_ASAN) || defined(CLEAVE_TEST_TSAN)
  skip("a sanitizer ends the program instead");
#else
  CHECK(error_of([] { Tensor<float, 1>({index_t{1} << 60}); }) ==
        "Tensor: out of memory: 4611686018427387904 bytes requested, tensors of this rank hold " +
            std::to_string(memory_stats().allocated));
#endif
}

TEST_CASE("views out of range are an error") {
  const Tensor<float, 2> x({4, 6});
  CHECK(error_of([&] { x.slice(0, 2, 5); }) ==
        "slice: [2, 5) is not in dimension 0 [shapes [4, 6]]");
  CHECK(error_of([&] { x.slice(-1, -1, 3); }) ==
        "slice: [-1, 3) is not in dimension 1 [shapes [4, 6]]");
  CHECK(error_of([&] { x.slice(1, 3, 2); }) ==
        "slice: [3, 2) is not in dimension 1 [shapes [4, 6]]");
  CHECK(error_of([&] { x.select(1, 6); }) ==
        "select: index 6 is not in dimension 1 [shapes [4, 6]]");
  CHECK(error_of([&] { x.select(0, -1); }) ==
        "select: index -1 is not in dimension 0 [shapes [4, 6]]");
  CHECK(error_of([&] { x.slice(2, 0, 1); }) ==
        "Tensor: dimension 2 of 2 does not exist [shapes [4, 6]]");
  CHECK(error_of([&] { x.extent(-3); }) ==
        "Tensor: dimension -3 of 2 does not exist [shapes [4, 6]]");
  CHECK(error_of([&] { x.permute({1, -1}); }) == "permute: dimension 1 is named twice");
  CHECK(error_of([&] { x.unsqueeze(3); }) ==
        "unsqueeze: a dimension cannot be inserted at 3 [shapes [4, 6]]");
  const auto box = [](index_t a, index_t b, index_t c, index_t d) {
    return Box{Shape(std::array<index_t, 2>{a, b}), Shape(std::array<index_t, 2>{c, d})};
  };
  const std::string outside = "Tensor: a box exceeds the tensor [shapes [4, 6]]";
  CHECK(error_of([&] { x[box(0, 0, 4, 7)]; }) == outside);
  CHECK(error_of([&] { x[box(-1, 0, 4, 6)]; }) == outside);
  CHECK(error_of([&] { x[box(3, 0, 1, 6)]; }) == outside);
  CHECK(error_of([&] { x[Box{}]; }) == outside);
}

TEST_CASE("a wrong shape is an error that names the mismatch") {
  const Tensor<float, 2> x({4, 6});
  CHECK(error_of([&] { x.item(); }) == "item: the tensor has 24 elements, not one [shapes [4, 6]]");
  CHECK(error_of([&] { x.reshape(std::array<index_t, 1>{23}); }) ==
        "reshape: the numbers of elements differ [shapes [4, 6] to [23]]");
  CHECK(error_of([&] { x.transpose(0, 1).reshape(std::array<index_t, 1>{24}); }) ==
        "reshape: the tensor is not contiguous; clone it first [shapes [6, 4] to [24]]");
  CHECK(error_of([&] { x.reshape(std::array<index_t, 2>{-4, -6}); }) ==
        "Tensor: extent -4 of dimension 0 is negative");
  CHECK(error_of([&] { x.copy_(Tensor<float, 2>({6, 4})); }) ==
        "copy_: the extents differ [shapes [6, 4] to [4, 6]]");
}

TEST_CASE("a tensor is contiguous if its elements are consecutive; extents of 1 may have gaps") {
  const auto x = counted<2>({4, 6});
  CHECK(x.contiguous());
  CHECK(!x.transpose(0, 1).contiguous());
  CHECK(x.slice(0, 2, 3).slice(1, 2, 4).contiguous());
  CHECK(!x.slice(0, 1, 3).slice(1, 2, 4).contiguous());
  CHECK(x.slice(1, 2, 3).slice(0, 0, 1).transpose(0, 1).contiguous());
}
