#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/tensor/overlap.hpp>

using namespace cleave;

namespace {

constexpr DType types[] = {DType::uint8, DType::float32, DType::float64};

/// The addresses of the bytes of all elements, once per element.
std::vector<std::uintptr_t> bytes_of(const ConstView& a) {
  std::vector<std::uintptr_t> bytes;
  const auto size = index_t(size_of(a.dtype));
  Shape index = Shape::filled(a.extents.dims, 0);
  for (index_t n = 0; n < a.size(); ++n) {
    const index_t at = detail::offset_of(index, a.strides) * size;
    for (index_t b = 0; b < size; ++b)
      bytes.push_back(reinterpret_cast<std::uintptr_t>(a.data) + std::uintptr_t(at + b));
    for (int d = a.extents.dims - 1; d >= 0 && ++index[d] == a.extents[d]; --d) index[d] = 0;
  }
  return bytes;
}

/// A sequence of small numbers.
struct Numbers {
  unsigned state;
  index_t operator()(index_t end) {
    state = state * 1664525u + 1013904223u;
    return index_t(state >> 8) % end;
  }
};

ConstView random_view(Numbers& next, const std::byte* memory) {
  ConstView view;
  view.dtype = types[next(3)];
  const int dims = int(next(4));
  view.extents = view.strides = Shape::filled(dims, 0);
  for (int d = 0; d < dims; ++d) {
    view.extents[d] = next(4);
    view.strides[d] = next(12) - 3;
  }
  view.data = memory + 512 + next(16) * index_t(size_of(view.dtype));
  return view;
}

}  // namespace

TEST_CASE("arrays overlap if a byte belongs to both, as sets of bytes confirm") {
  const std::vector<std::byte> memory(1024);
  Numbers next{7};
  int overlapping = 0, apart = 0, wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    const ConstView a = random_view(next, memory.data()), b = random_view(next, memory.data());
    const auto ours = bytes_of(a), theirs = bytes_of(b);
    const std::set<std::uintptr_t> set(ours.begin(), ours.end());
    bool expected = false;
    for (const std::uintptr_t byte : theirs) expected = expected || set.count(byte) != 0;
    ++(expected ? overlapping : apart);
    wrong += detail::overlap(a, b) != expected;
    wrong += detail::has_distinct_elements(a) != (set.size() == ours.size());
  }
  CHECK(wrong == 0);
  CHECK(overlapping > 2000);
  CHECK(apart > 2000);
}

TEST_CASE("halves of the columns of a large matrix are disjoint, which is found quickly") {
  const auto at = [](index_t column, index_t columns) {
    return ConstView{reinterpret_cast<const void*>(std::uintptr_t(4096 + 4 * column)),
                     DType::float32, std::array<index_t, 2>{1 << 20, columns},
                     std::array<index_t, 2>{1000, 1}};
  };
  CHECK_FALSE(detail::overlap(at(0, 500), at(500, 500)));
  CHECK(detail::overlap(at(0, 500), at(499, 500)));
  CHECK(detail::overlap(at(999, 2), at(0, 1)));  // first element of the next row
  CHECK(detail::has_distinct_elements(at(0, 1000)));
  CHECK_FALSE(detail::has_distinct_elements(at(0, 1001)));
}

TEST_CASE("the same elements are those of one address, type and order") {
  const std::vector<std::byte> memory(64);
  const ConstView a{memory.data(), DType::float32, std::array<index_t, 2>{1, 3},
                    std::array<index_t, 2>{5, 1}};
  ConstView b = a;
  b.strides[0] = 3;  // stride of an extent of 1
  CHECK(detail::same_elements(a, b));
  b.strides[1] = 2;
  CHECK_FALSE(detail::same_elements(a, b));
  b = a;
  b.dtype = DType::int32;
  CHECK_FALSE(detail::same_elements(a, b));
}
