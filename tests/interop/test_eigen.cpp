// Eigen's matrices, maps and blocks as tensors, and tensors as maps: the same memory both ways.
#include <complex>

#include <doctest/doctest.h>

#include <cleave/dtensor/from_local.hpp>
#include <cleave/interop/eigen.hpp>

#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_CASE("matrices, vectors, maps and blocks of Eigen are tensors of the same memory") {
  Eigen::MatrixXd columns(3, 4);  // in Eigen's order: column by column
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) columns(i, j) = 10 * i + j;
  const Tensor<double, 2> x = eigen::as_tensor(columns);
  CHECK(x.data() == columns.data());
  CHECK(x.shape() == std::array<index_t, 2>{3, 4});
  CHECK(x.strides() == std::array<index_t, 2>{1, 3});
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) CHECK(x(i, j) == 10 * i + j);

  const auto block = eigen::as_tensor(columns.block(1, 2, 2, 2));
  CHECK(block.data() == &columns(1, 2));
  CHECK((block(0, 0) == 12 && block(0, 1) == 13 && block(1, 0) == 22 && block(1, 1) == 23));
  const auto row = eigen::as_tensor(columns.row(2));  // not contiguous
  static_assert(decltype(row)::dims == 1);
  CHECK((row.extent(0) == 4 && row(3) == 23 && &row(1) == &columns(2, 1)));

  Eigen::Matrix<std::complex<float>, 2, 3, Eigen::RowMajor> fixed;
  fixed.setZero();
  const auto y = eigen::as_tensor(fixed);
  y(1, 2) = {1, 2};
  CHECK(fixed(1, 2) == std::complex<float>(1, 2));
  CHECK(y.strides() == std::array<index_t, 2>{3, 1});
  Eigen::MatrixXd none(0, 5);
  CHECK(eigen::as_tensor(none).shape() == std::array<index_t, 2>{0, 5});
}

TEST_CASE("maps of tensors have their memory and strides") {
  const Tensor<double, 2> x({3, 4});
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) x(i, j) = 10 * i + j;
  auto map = eigen::map(x);
  CHECK(map.data() == x.data());
  CHECK((map.rows() == 3 && map.cols() == 4 && map(2, 1) == 21));
  const auto turned = eigen::map(x.transpose(0, 1));
  CHECK((turned.data() == x.data() && turned.rows() == 4 && turned(1, 2) == 21));
  map *= 2;
  CHECK(x(2, 1) == 42);
  const Eigen::MatrixXd product = map * turned.transpose().transpose();
  double sum = 0;
  for (int k = 0; k < 4; ++k) sum += x(0, k) * x(1, k);
  CHECK(product(0, 1) == sum);
  const auto column = eigen::map(x.select(1, 3));
  CHECK((column.size() == 3 && column(2) == 46 && &column(0) == &x(0, 3)));
}

TEST_CASE("ranks distribute what they have in Eigen") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<axes::dp>(world, {world.size()});
    Eigen::MatrixXd own(4, 2);
    own.setConstant(world.rank());
    const auto x = from_local(eigen::as_tensor(own), mesh, Shard<0>{});
    const auto columns = x.redistribute(Shard<1>{});
    const auto map = eigen::map(columns.to_local());
    CHECK(map.rows() == 4 * world.size());
    for (int i = 0; i < map.rows(); ++i)
      for (int j = 0; j < map.cols(); ++j) CHECK(map(i, j) == i / 4);
  });
}
