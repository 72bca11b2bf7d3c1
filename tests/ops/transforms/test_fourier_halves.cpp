// Transforms of several fields on several nodes, whose halves are exchanged one after the other:
// values of plane waves, bits, what is exchanged.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/transforms/cosine_sine.hpp>
#include <cleave/ops/transforms/fourier.hpp>

#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using namespace cleave::axes;

namespace fourier_halves {
namespace {

using Complex = std::complex<double>;

/// Ranks that report to be on a node each.
class OnNodes final : public Communicator {
 public:
  explicit OnNodes(std::shared_ptr<Communicator> ranks)
      : Communicator(ranks->rank(), ranks->size(), ranks->label(), ranks->shared_state()),
        ranks_(std::move(ranks)) {}

  const char* backend() const noexcept override { return ranks_->backend(); }
  bool concurrent() const noexcept override { return ranks_->concurrent(); }
  std::vector<int> nodes() const override {
    std::vector<int> numbers;
    for (int r = 0; r < size(); ++r) numbers.push_back(r);
    return numbers;
  }
  std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) override {
    return std::make_shared<OnNodes>(ranks_->subgroup(ranks, std::move(label)));
  }

 protected:
  void execute(std::span<const Collective> collectives) override { pass_on(*ranks_, collectives); }
  void gather_signatures(const Signature& mine, std::span<Signature> all) override {
    pass_on(*ranks_, mine, all);
  }

 private:
  std::shared_ptr<Communicator> ranks_;
};

/// The wave number of a field along a dimension.
index_t wave(index_t field, int d) { return (3 * field + 2 * d + 1) % 5; }

/// In every field the plane wave exp(2πi k · j / n) of that field's wave numbers.
template <class... P>
auto waves(const std::array<index_t, 4>& shape, const auto& mesh, P... p) {
  Tensor<Complex, 4> all(shape);
  index_t at = 0;
  for (index_t f = 0; f < shape[0]; ++f)
    for (index_t i = 0; i < shape[1]; ++i)
      for (index_t j = 0; j < shape[2]; ++j)
        for (index_t k = 0; k < shape[3]; ++k) {
          const double turns = double(wave(f, 1) * i % shape[1]) / double(shape[1]) +
                               double(wave(f, 2) * j % shape[2]) / double(shape[2]) +
                               double(wave(f, 3) * k % shape[3]) / double(shape[3]);
          all.data()[at++] = std::polar(1.0, 2 * 3.14159265358979323846 * turns);
        }
  return distribute_tensor(all, mesh, p...);
}

/// The largest difference from one non-zero mode per field, on this rank.
double error_of_modes(const auto& modes) {
  const std::array<index_t, 4> shape = modes.shape();
  const double n = double(shape[1] * shape[2] * shape[3]);
  double error = 0;
  modes.each_local_box([&](const Box& global, const Box& local) {
    const Tensor<Complex, 4> part = modes.to_local()[local];
    for (index_t f = 0; f < part.extent(0); ++f)
      for (index_t i = 0; i < part.extent(1); ++i)
        for (index_t j = 0; j < part.extent(2); ++j)
          for (index_t k = 0; k < part.extent(3); ++k) {
            const index_t field = global.begin[0] + f;
            const bool is_wave = global.begin[1] + i == wave(field, 1) &&
                                 global.begin[2] + j == wave(field, 2) &&
                                 global.begin[3] + k == wave(field, 3);
            error = std::max(error, std::abs(part(f, i, j, k) - Complex(is_wave ? n : 0)));
          }
  });
  return error / n;
}

bool same_bits(const auto& a, const auto& b) {
  const auto x = a.to_local().clone(), y = b.to_local().clone();
  return x.size() == y.size() &&
         std::memcmp(x.data(), y.data(), std::size_t(x.size()) * sizeof(*x.data())) == 0;
}

}  // namespace
}  // namespace fourier_halves

using namespace fourier_halves;

TEST_CASE("fields on several nodes are exchanged in halves, with the same bits") {
  on_ranks({2, 3}, [](World& world) {
    const World nodes(std::make_shared<OnNodes>(world.shared_communicator()));
    const auto near = init_device_mesh<dp>(world, {world.size()});
    const auto far = init_device_mesh<dp>(nodes, {world.size()});
    const std::array<index_t, 4> shape{7, 40, 35, 45};
    const auto x = waves(shape, near, Shard<1>{}), z = waves(shape, far, Shard<1>{});
    using D = dim<1, 2, 3>;
    CommTrace trace(world);
    const auto y = fft(x, D{});
    CHECK(trace.count() == 1);
    const index_t bytes = trace.received_bytes();
    const auto w = fft(z, D{});
    CHECK(trace.count() == 1 + 2);
    CHECK(trace.received_bytes() == 2 * bytes);
    static_assert(std::is_same_v<decltype(w.placements()), Placements<Shard<2>>>);
    CHECK(error_of_modes(w) < 1e-14);
    CHECK(same_bits(w, y));
    CHECK(same_bits(ifft(w, D{}), ifft(y, D{})));
    CHECK(same_bits(z, waves(shape, near, Shard<1>{})));  // arguments are kept
    const auto real_x = real(x), real_z = real(z);
    CHECK(same_bits(rfft(real_z, D{}), rfft(real_x, D{})));
    CHECK(same_bits(irfft(rfft(real_z, D{}), D{}), irfft(rfft(real_x, D{}), D{})));
    CHECK(same_bits(dct(real_z, D{}), dct(real_x, D{})));
  });
}

TEST_CASE("pencils of fields on several nodes") {
  on_ranks({4}, [](World& world) {
    const World nodes(std::make_shared<OnNodes>(world.shared_communicator()));
    const auto far = init_device_mesh<dp, tp>(nodes, {2, 2});
    const std::array<index_t, 4> shape{11, 33, 35, 45};
    const auto z = waves(shape, far, Shard<1>{}, Shard<2>{});
    CommTrace trace(world);
    const auto w = fft(z, dim<1, 2, 3>{});
    CHECK(trace.count() == 4);
    CHECK(error_of_modes(w) < 1e-14);
    const auto back = ifft(w, dim<1, 2, 3>{});
    static_assert(std::is_same_v<decltype(back.placements()), Placements<Shard<1>, Shard<2>>>);
    double error = 0;
    for (index_t i = 0; i < back.to_local().size(); ++i)
      error = std::max(error, std::abs(back.to_local().data()[i] - z.to_local().data()[i]));
    CHECK(error < 1e-14);
  });
}

TEST_CASE("small fields, a single one, and sharded ones are exchanged whole") {
  on_ranks({2}, [](World& world) {
    const World nodes(std::make_shared<OnNodes>(world.shared_communicator()));
    const auto far = init_device_mesh<dp>(nodes, {2});
    const auto exchanges = [&](const auto& x) {
      CommTrace trace(world);
      CHECK(error_of_modes(fft(x, dim<1, 2, 3>{})) < 1e-14);
      return trace.count();
    };
    CHECK(exchanges(waves({4, 12, 13, 14}, far, Shard<1>{})) == 1);
    CHECK(exchanges(waves({1, 64, 64, 65}, far, Shard<1>{})) == 1);
    CHECK(exchanges(waves({5, 37, 41, 40}, far, Shard<0>{})) == 0);
  });
}
