// Checkpoints: written on one mesh, read on any other with any placements; damage is detected.
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cleave/nn.hpp>

#include "errors.hpp"
#include "models.hpp"
#include "ranks.hpp"
#include "shared_directory.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}
void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Small and large tensors of several types, including a scalar and an empty tensor.
template <class A, class B, class C, class D, class E>
struct Mixed {
  A large;
  B complex;
  C scalar;
  D empty;
  E halves;
  static constexpr nn::names members{"large", "complex", "scalar", "empty", "halves"};
};
template <class A, class B, class C, class D, class E>
Mixed(A, B, C, D, E) -> Mixed<A, B, C, D, E>;

template <class X>
struct Ragged {
  X rows;
  static constexpr nn::names members{"rows"};
};
template <class X>
Ragged(X) -> Ragged<X>;

auto mixed(double scale) {
  using Z = std::complex<double>;
  Tensor<double, 2> large({130, 101});
  for (index_t i = 0; i < large.size(); ++i) large.data()[i] = scale * double(i);
  Tensor<Z, 2> complex({3, 5});
  for (index_t i = 0; i < 15; ++i) complex.data()[i] = Z(scale * double(i), -double(i));
  Tensor<half, 1> halves({7});
  for (index_t i = 0; i < 7; ++i) halves.data()[i] = half(float(scale) * float(i));
  return Mixed{large, complex, Tensor<float, 0>(std::array<index_t, 0>{}, {float(scale)}),
               Tensor<float, 2>({0, 4}), halves};
}

template <class T, int Rank>
bool equal(const Tensor<T, Rank>& a, const Tensor<T, Rank>& b) {
  return a.shape() == b.shape() && std::equal(a.data(), a.data() + a.size(), b.data());
}

/// Replicates the scalar and gives the other tensors the placements p.
auto place_mixed(const auto& m, const auto& mesh, auto... p) {
  return Mixed{nn::place(m.large, mesh, p...), nn::place(m.complex, mesh, p...),
               nn::place(m.scalar, mesh), nn::place(m.empty, mesh, p...),
               nn::place(m.halves, mesh, p...)};
}

bool equal_to_saved(const auto& m) {
  const auto expected = mixed(1);
  return equal(whole(m.large), expected.large) && equal(whole(m.complex), expected.complex) &&
         equal(whole(m.scalar), expected.scalar) && equal(whole(m.empty), expected.empty) &&
         equal(whole(m.halves), expected.halves);
}

}  // namespace

TEST_CASE("a checkpoint of one mesh is read on another, under other placements") {
  on_ranks({1, 2, 3, 4, 6}, [](World& world) {
    const SharedDirectory directory(world);
    const auto line = init_device_mesh<tp>(world, {world.size()});
    int saved = 0;
    const auto read_back = [&](const std::string& path, const auto& mesh, auto... p) {
      const auto m = place_mixed(mixed(-2), mesh, p...);
      const nn::Notes notes = nn::load_checkpoint(path, nn::state_dict(m));
      CHECK(equal_to_saved(m));
      CHECK(nn::note_of(notes, "step") == "12 \"ab\"\n");
    };
    const auto check = [&](const auto& mesh, auto... p) {
      const std::string path = directory / ("save-" + std::to_string(saved++));
      const auto m = place_mixed(mixed(1), mesh, p...);
      nn::StateDict state = nn::state_dict(m);
      state.notes.emplace_back("step", "12 \"ab\"\n");
      CommTrace trace(world);
      nn::save_checkpoint(world, path, state);
      if constexpr (decltype(m.large)::layout.is_box())
        CHECK(trace.received_bytes() <= 3 * 8 * 2);  // only the agreement that there is no error
      CHECK(files_of(path).size() == std::size_t(world.size()));
      read_back(path, line, Shard<0>{});
      read_back(path, line, Replicate{});
      read_back(path, line, BlockCyclic<0, 3>{});
      const auto alone = mixed(-3);
      nn::load_checkpoint(path, nn::state_dict(alone));
      CHECK(equal_to_saved(alone));
      if (world.size() % 2 == 0) {
        const auto square = init_device_mesh<dp, tp>(world, {world.size() / 2, 2});
        read_back(path, square, Shard<0>{}, Replicate{});
        read_back(path, square, Shard<0>{}, Shard<0>{});
      }
      barrier(world);
    };
    check(line, Shard<0>{});
    check(line, Replicate{});
    check(line, Balanced<0>{});
    check(line, BlockCyclic<0, 3>{});
    check(line, BlockCyclic<0>(4));
    if (world.size() == 3) check(line, Owned<1>{});
    if (world.size() % 2 == 0) {
      const auto square = init_device_mesh<dp, tp>(world, {world.size() / 2, 2});
      check(square, Replicate{}, Shard<0>{});
      check(square, Shard<0>{}, Shard<0>{});
      check(square, Replicate{}, BlockCyclic<0, 5>{});
      check(square, BlockCyclic<0, 1>{}, BlockCyclic<0, 2>{});
    }
  });
}

TEST_CASE(
    "tensors with cut points are saved, and read under others, also after their module is gone") {
  on_ranks({3}, [](World& world) {
    const SharedDirectory directory(world);
    const auto line = init_device_mesh<tp>(world, {3});
    const auto one = [&](double scale, auto p) {
      return Ragged{nn::place(mixed(scale).large, line, p)};
    };
    const auto state = nn::state_dict(one(1, Cuts<0>{0, 7, 7, 130}));
    const std::string path = directory / "ragged";
    CommTrace trace(world);
    nn::save_checkpoint(world, path, state);
    CHECK(trace.received_bytes() <= 3 * 8 * 2);  // only the agreement that there is no error
    const auto read_back = [&](auto p) {
      const auto m = one(-2, p);
      nn::load_checkpoint(path, nn::state_dict(m));
      CHECK(equal(whole(m.rows), mixed(1).large));
    };
    read_back(Cuts<0>{0, 1, 100, 130}), read_back(Cuts<1>{0, 0, 101, 101});
    read_back(Shard<0>{}), read_back(BlockCyclic<0>(9));
    barrier(world);
  });
}

TEST_CASE("replicas share the work: large arrays in parts, small ones in turn") {
  on_ranks({4}, [](World& world) {
    const SharedDirectory directory(world);
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const auto m = place_mixed(mixed(1), mesh, Replicate{}, Shard<0>{});
    nn::save_checkpoint(world, directory / "one", nn::state_dict(m));
    const auto size = bytes_of(directory / ("one/part-0000" + std::to_string(world.rank()) +
                                            "-of-00004.safetensors"))
                          .size();
    CHECK(size > 130 * 101 * 8 / 4);
    CHECK(size < 130 * 101 * 8 / 4 + 3000);
    barrier(world);
  });
}

TEST_CASE(
    "a model and its optimizer go on from a checkpoint on another mesh with the same losses") {
  on_ranks({2, 4}, [](World& world) {
    const SharedDirectory directory(world);
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto other = init_device_mesh<tp>(world, {world.size()});
    const Tensor<double, 2> x({4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 1, 0, 1, 1, 0, 2});
    const auto step = [&](const auto& m, auto& optimizer, const auto& on) {
      const auto y = m(nn::place(x, on));
      zero_grad(m);
      const auto loss = sum(y * y);
      backward(loss);
      optimizer.step(m);
      return loss.value().item();
    };
    manual_seed(world, 8);
    const auto m = requires_grad(nn::place(nn::mlp<double>(4, 6, 3), mesh));
    auto optimizer = nn::adamw(m, {.learning_rate = 0.05, .weight_decay = 0.1});
    step(m, optimizer, mesh);
    step(m, optimizer, mesh);
    const auto state = nn::state_dict(m, "model.") + nn::state_dict(optimizer, "optimizer.");
    nn::save_checkpoint(world, directory / "step-2", state);
    std::vector<double> expected;
    for (int i = 0; i < 3; ++i) expected.push_back(step(m, optimizer, mesh));

    const auto again = requires_grad(nn::place(nn::mlp<double>(4, 6, 3), other, Shard<0>{}));
    auto second = nn::adamw(again, {.learning_rate = 0.05, .weight_decay = 0.1});
    CHECK(nn::latest_checkpoint(directory.path()) == directory / "step-2");
    nn::load_checkpoint(nn::latest_checkpoint(directory.path()),
                        nn::state_dict(again, "model.") + nn::state_dict(second, "optimizer."));
    for (const double loss : expected)
      CHECK(std::abs(step(again, second, other) - loss) < 1e-12 * std::abs(loss));
    CHECK(second.steps.value(0) == 5);
    barrier(world);
  });
}

TEST_CASE("an array in one safetensors file has its bytes in order, and any placements") {
  on_ranks({1, 2, 4}, [](World& world) {
    const SharedDirectory directory(world);
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const std::string path = directory / "x.safetensors";
    Tensor<bfloat16, 2> x({5, 7});
    for (index_t i = 0; i < 35; ++i) x.data()[i] = bfloat16(float(i) - 8);
    nn::save_safetensors(path, "weight", distribute_tensor(x, mesh, Shard<1>{}));
    const std::string bytes = bytes_of(path);
    REQUIRE(bytes.size() > 70);
    CHECK(bytes.substr(bytes.size() - 70) ==
          std::string(reinterpret_cast<const char*>(x.data()), 70));
    CHECK(contains(bytes, R"("weight":{"dtype":"BF16","shape":[5,7],"data_offsets":[0,70]})"));
    const nn::Linear m{zeros<bfloat16>({5, 7}, mesh, Shard<0>{}), nn::None{}};
    nn::load_checkpoint(path, nn::state_dict(m));
    const auto full = m.weight.full_tensor();
    for (index_t i = 0; i < 35; ++i) CHECK(float(full.data()[i]) == float(i) - 8);
    CHECK(contains(error_of([&] { nn::save_safetensors("/nowhere/x", "x", m.weight); }),
                   "/nowhere/x"));
    barrier(world);
  });
}

TEST_CASE("floats of 8 bits have the names of safetensors files") {
  on_ranks({1, 2}, [](World& world) {
    const SharedDirectory directory(world);
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto check = [&]<class T>(T, const std::string& name) {
      const std::string path = directory / name;
      Tensor<T, 2> x({32, 8});
      for (index_t i = 0; i < 256; ++i) x.data()[i].bits = std::uint8_t(255 - i);
      nn::save_safetensors(path, "weight", distribute_tensor(x, mesh, Shard<0>{}));
      const std::string bytes = bytes_of(path);
      CHECK(contains(bytes,
                     "{\"dtype\":\"" + name + "\",\"shape\":[32,8],\"data_offsets\":[0,256]}"));
      REQUIRE(bytes.size() > 256);
      for (std::size_t i = 0; i < 256; ++i)
        CHECK(std::uint8_t(bytes[bytes.size() - 256 + i]) == 255 - i);
      const nn::Linear read{zeros<T>({32, 8}, mesh, Replicate{}), nn::None{}};
      nn::load_checkpoint(path, nn::state_dict(read));
      for (index_t i = 0; i < 256; ++i) CHECK(read.weight.to_local().data()[i].bits == 255 - i);
    };
    check(float8_e4m3{}, "F8_E4M3");
    check(float8_e5m2{}, "F8_E5M2");
    barrier(world);
  });
}

TEST_CASE("errors of saving and reading give the reason and name the file") {
  on_ranks({1, 2}, [](World& world) {
    const SharedDirectory directory(world);
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto m = nn::place(nn::linear<double>(3, 2), mesh);
    const auto state = nn::state_dict(m);
    const std::string path = directory / "step-1";
    nn::save_checkpoint(world, path, state);
    CHECK(contains(error_of([&] { nn::save_checkpoint(world, path, state); }),
                   world.rank() == 0 ? "step-1 exists already" : "another rank could not write"));
    CHECK(contains(error_of([&] { nn::save_checkpoint(world, directory / "no/where", state); }),
                   world.rank() == 0 ? "cannot be created" : "another rank could not write"));
    CHECK(contains(error_of([&] { nn::load_checkpoint(directory / "nothing", state); }),
                   "nothing cannot be opened"));
    const auto larger = nn::place(nn::linear<double>(4, 2), mesh);
    CHECK(contains(error_of([&] { nn::load_checkpoint(path, nn::state_dict(larger)); }),
                   "has 'weight' as f64[2, 3], not as f64[2, 4]"));
    const auto floats = nn::place(nn::linear<float>(3, 2), mesh);
    CHECK(contains(error_of([&] { nn::load_checkpoint(path, nn::state_dict(floats)); }),
                   "has 'weight' as f64[2, 3], not as f32[2, 3]"));
    const auto bare = nn::Linear{m.weight, nn::None{}};
    CHECK(contains(error_of([&] { nn::load_checkpoint(path, nn::state_dict(bare)); }),
                   "has a tensor 'bias' that the state dict lacks"));
    nn::load_checkpoint(path, nn::state_dict(bare), {.ignore_rest = true});
    CHECK(contains(error_of([&] { nn::load_checkpoint(path, nn::state_dict(m, "m."), {true}); }),
                   "has no tensor 'm.weight'"));
    barrier(world);
  });
}

TEST_SUITE_BEGIN("threads only");

TEST_CASE("every single changed byte, and every truncation, is an error that names the file") {
  on_ranks({1}, [](World& world) {
    const SharedDirectory directory(world);
    RandomState random{1, 0};
    const auto m = nn::make(nn::linear<double>(3, 2), random);
    const auto state = nn::state_dict(m);
    nn::save_checkpoint(world, directory / "a", state);
    const std::string file = directory / "a/part-00000-of-00001.safetensors";
    const std::string good = bytes_of(file);
    const auto complaint = [&](const std::string& bytes) {
      write_bytes(file, bytes);
      return error_of([&] { nn::load_checkpoint(directory / "a", state); });
    };
    int unnoticed = 0, unnamed = 0;
    for (std::size_t i = 0; i < good.size(); ++i)
      for (const int bit : {0, 5}) {
        std::string bad = good;
        bad[i] = char(bad[i] ^ (1 << bit));
        const std::string text = complaint(bad);
        unnoticed += text.empty();
        unnamed += text.find(file) == std::string::npos;
      }
    for (std::size_t size = 0; size < good.size(); size += 7) {
      const std::string text = complaint(good.substr(0, size));
      unnoticed += text.empty();
      unnamed += text.find(file) == std::string::npos;
    }
    CHECK(unnoticed == 0);
    CHECK(unnamed == 0);
    CHECK(contains(complaint(good + "x"), "is truncated or corrupt"));
    CHECK(complaint(good).empty());
  });
  on_ranks({2}, [](World& world) {
    const SharedDirectory directory(world);
    const auto mesh = init_device_mesh<dp>(world, {2});
    const auto m = nn::place(nn::linear<double>(3, 2), mesh, Shard<0>{});
    nn::save_checkpoint(world, directory / "a", nn::state_dict(m));
    const std::string second = directory / "a/part-00001-of-00002.safetensors";
    if (world.rank() == 0) unlink(second.c_str());
    barrier(world);
    CHECK(contains(error_of([&] { nn::load_checkpoint(directory / "a", nn::state_dict(m)); }),
                   second + " is missing"));
    barrier(world);
  });
}

TEST_CASE("interrupted saves are not read as checkpoints and do not block new ones") {
  on_ranks({2}, [](World& world) {
    const SharedDirectory directory(world);
    const auto mesh = init_device_mesh<dp>(world, {2});
    const auto m = nn::place(nn::linear<double>(3, 2), mesh);
    if (world.rank() == 0) {
      mkdir((directory / "step-30.partial").c_str(), 0777);
      write_bytes(directory / "step-30.partial/part-00007-of-00008.safetensors", "half of a file");
      mkdir((directory / "step-4").c_str(), 0777);
      mkdir((directory / "step-20").c_str(), 0777);
    }
    barrier(world);
    CHECK(nn::latest_checkpoint(directory.path()) == directory / "step-20");
    CHECK(nn::latest_checkpoint(directory / "none").empty());
    barrier(world);
    nn::save_checkpoint(world, directory / "step-30", nn::state_dict(m));
    CHECK(nn::latest_checkpoint(directory.path()) == directory / "step-30");
    CHECK(files_of(directory / "step-30").size() == 2);
    nn::load_checkpoint(directory / "step-30", nn::state_dict(m));
    barrier(world);
  });
}

TEST_CASE("a file of another program is read: no metadata, other spacing, escapes") {
  on_ranks({1}, [](World& world) {
    const SharedDirectory directory(world);
    std::string header =
        R"( { "b\u0069as" : {"shape": [2], "dtype":"F32", "data_offsets":[0, 8] },)"
        R"("weight":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]}} )";
    const std::uint64_t length = header.size();
    const float elements[] = {1.5f, -2, 3, 4};
    mkdir((directory / "d").c_str(), 0777);
    write_bytes(directory / "d/model.safetensors",
                std::string(reinterpret_cast<const char*>(&length), 8) + header +
                    std::string(reinterpret_cast<const char*>(elements), 16));
    RandomState random{1, 0};
    const auto m = nn::make(nn::linear(1, 2), random);
    for (const char* const path : {"d/model.safetensors", "d"}) {
      m.bias.fill_(0);
      nn::load_checkpoint(directory / path, nn::state_dict(m));
      CHECK(m.bias(0) == 1.5f);
      CHECK(m.weight(1, 0) == 4);
    }
  });
}

TEST_SUITE_END();
