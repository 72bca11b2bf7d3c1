#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/tensor/tensor.hpp>

#include "cases.hpp"
#include "errors.hpp"

#if defined(CLEAVE_POISONS_MEMORY)
#include <sanitizer/asan_interface.h>
#endif

using namespace cleave;
using cleave::detail::HostCache;
using cleave::testing::error_of;
using cleave::testing::skip;

namespace {

constexpr std::size_t kibibyte = 1024, mebibyte = 1024 * kibibyte;

/// Runs f on a new thread, whose cache is empty and which the environment may enable.
template <class F>
void on_new_rank(const F& f, const char* mebibytes = nullptr) {
  if (mebibytes != nullptr) setenv("CLEAVE_HOST_CACHE_MB", mebibytes, 1);
  std::thread(f).join();
  unsetenv("CLEAVE_HOST_CACHE_MB");
}

}  // namespace

TEST_CASE("blocks are at most an eighth larger than requested") {
  CHECK(HostCache::block_bytes(4096) == 4096);
  CHECK(HostCache::block_bytes(4097) == 4608);
  CHECK(HostCache::block_bytes(8191) == 8192);
  CHECK(HostCache::block_bytes(64 * mebibyte) == 64 * mebibyte);
  CHECK(HostCache::block_bytes(64 * mebibyte + 1) == 72 * mebibyte);
  for (std::size_t bytes = 4096; bytes < 2 * mebibyte; bytes += 377) {
    const std::size_t block = HostCache::block_bytes(bytes);
    CHECK_UNARY(block >= bytes && block - bytes < bytes / 8 + 1);
    CHECK_UNARY(HostCache::block_bytes(block) == block);
  }
}

TEST_CASE("every size of block is kept and found again") {
  HostCache cache(std::size_t(1) << 40);
  for (std::size_t bytes = 4096; bytes <= 8 * mebibyte; bytes += bytes / 7) {
    void* first = cache.allocate(bytes);
    REQUIRE(first != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(first) % 64 == 0);
    std::memset(first, 1, bytes);
    cache.deallocate(first, bytes);
    CHECK(cache.allocate(bytes) == first);
    cache.deallocate(first, bytes);
  }
  const MemoryStats stats = cache.stats();
  CHECK(stats.allocated == 0);
  cache.release();
  CHECK(cache.stats().cached == 0);
}

TEST_CASE("the memory of a destroyed tensor is reused by the next of its size") {
  on_new_rank([] {
    const void* first = Tensor<float, 1>({1 << 20}).data();
    const Tensor<float, 2> x({1 << 10, 1 << 10});
    CHECK(x.data() == first);
    CHECK(reinterpret_cast<std::uintptr_t>(x.data()) % 64 == 0);
    const Tensor<float, 1> other({1 << 20});
    CHECK(static_cast<const void*>(other.data()) != first);
    CHECK(memory_stats().fresh == 2);
    CHECK(memory_stats().reused == 1);
  });
}

TEST_CASE("tensors of less than 4 KiB are neither kept nor counted") {
  on_new_rank([] {
    {
      const Tensor<float, 1> x({1023});
    }
    CHECK(memory_stats().allocated + memory_stats().cached + memory_stats().peak == 0);
    {
      const Tensor<float, 1> x({1024});
    }
    CHECK(memory_stats().cached == 4096);
    const Tensor<float, 1> none({0});
    CHECK(memory_stats().cached == 4096);
  });
}

TEST_CASE("memory_stats reports memory in use, its peak, and cached memory") {
  on_new_rank([] {
    {
      const Tensor<std::uint8_t, 1> x({index_t(mebibyte)});
      const Tensor<std::uint8_t, 1> handle = x;  // shares the memory
      CHECK(memory_stats().allocated == mebibyte);
      const Tensor<std::uint8_t, 1> y({index_t(2 * mebibyte)});
      CHECK(memory_stats().allocated == 3 * mebibyte);
      CHECK(memory_stats().cached == 0);
    }
    CHECK(memory_stats().allocated == 0);
    CHECK(memory_stats().cached == 3 * mebibyte);
    CHECK(memory_stats().peak == 3 * mebibyte);
    const Tensor<std::uint8_t, 1> y({index_t(2 * mebibyte)});
    CHECK(memory_stats().allocated == 2 * mebibyte);
    CHECK(memory_stats().cached == mebibyte);
    release_memory();
    CHECK(memory_stats().cached == 0);
    CHECK(memory_stats().allocated == 2 * mebibyte);
    CHECK(memory_stats().peak == 3 * mebibyte);
    CHECK(y.size() == index_t(2 * mebibyte));
  });
}

TEST_CASE("the cache keeps at most its bound, the newest blocks first") {
  on_new_rank(
      [] {
        const void* second = nullptr;
        {
          const Tensor<std::uint8_t, 1> a({index_t(512 * kibibyte)}), b({index_t(640 * kibibyte)});
          second = a.data();  // b is freed first
        }
        CHECK(memory_stats().cached == 512 * kibibyte);
        CHECK(Tensor<std::uint8_t, 1>({index_t(512 * kibibyte)}).data() == second);
        {
          const Tensor<std::uint8_t, 1> larger_than_all({index_t(2 * mebibyte)});
        }
        CHECK(memory_stats().cached == 512 * kibibyte);
        CHECK(memory_stats().allocated == 0);
        CHECK(memory_stats().peak == 2 * mebibyte);
      },
      "1");
}

TEST_CASE("a bound of zero keeps nothing") {
  on_new_rank(
      [] {
        {
          const Tensor<float, 1> x({1 << 20});
        }
        CHECK(memory_stats().cached == 0);
        CHECK(memory_stats().peak == 4 * mebibyte);
        {
          const Tensor<float, 1> x({1 << 20});
        }
        CHECK(memory_stats().fresh == 2);
      },
      "0");
}

TEST_CASE("a bound that is not a number of MiB is an error") {
  for (const std::string text : {"much", "-1", "1 GB", "nan"})
    on_new_rank(
        [&] {
          CHECK(error_of([] { Tensor<float, 1>({4096}); }) ==
                "run: CLEAVE_HOST_CACHE_MB is '" + text + "'; use MiB >= 0");
          CHECK(error_of([] { Tensor<float, 1>({16}); }) == "");
        },
        text.c_str());
}

TEST_CASE("memory freed by another thread returns to the rank that allocated it") {
  on_new_rank([] {
    Tensor<float, 1> x({1 << 20});
    const void* data = x.data();
    std::thread([y = std::move(x)]() mutable {
      y = Tensor<float, 1>({1 << 18});
      CHECK(memory_stats().cached == 0);  // this thread's own cache
      CHECK(memory_stats().allocated == mebibyte);
    }).join();
    x = Tensor<float, 1>();
    CHECK(memory_stats().allocated == 0);
    CHECK(memory_stats().cached == 4 * mebibyte);
    CHECK(Tensor<float, 1>({1 << 20}).data() == data);
  });
}

TEST_CASE("tensors outlive the rank that made them") {
  Tensor<int, 1> x;
  const std::size_t before = memory_stats().allocated;
  on_new_rank([&] {
    x = Tensor<int, 1>({1 << 20});
    x.fill_(7);
  });
  CHECK(x((1 << 20) - 1) == 7);
  x = Tensor<int, 1>();  // freed directly, because its cache has ended
  CHECK(memory_stats().allocated == before);
}

TEST_CASE("many threads may free memory of one rank while it allocates more") {
  on_new_rank([] {
    for (int round = 0; round < 20; ++round) {
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        std::vector<Tensor<int, 1>> batch;
        for (int i = 0; i < 16; ++i) batch.emplace_back(std::array<index_t, 1>{1024 + 512 * i});
        for (Tensor<int, 1>& x : batch) x.fill_(round);
        threads.emplace_back([batch = std::move(batch), round]() mutable {
          for (Tensor<int, 1>& x : batch) {
            CHECK_UNARY(x(x.size() - 1) == round);
            x = Tensor<int, 1>();
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
    CHECK(memory_stats().allocated == 0);
    CHECK(memory_stats().cached > 0);
  });
}

TEST_CASE("memory of another source is counted, and returns to it") {
  struct Arena final : cleave::detail::HostMemory {
    void* allocate(std::size_t bytes) noexcept override {
      return bytes <= sizeof block && !used ? (used = true, block) : nullptr;
    }
    void release(void*) noexcept override { used = false; }
    alignas(64) std::byte block[8192];
    bool used = false;
  };
  const auto arena = std::make_shared<Arena>();
  cleave::detail::host_memory() = arena;
  on_new_rank([&] {
    {
      const Tensor<std::uint8_t, 1> x({8192}), y({8192});
      CHECK(static_cast<void*>(x.data()) == arena->block);
      CHECK(static_cast<void*>(y.data()) != arena->block);
      CHECK(memory_stats().allocated == 16384);
      CHECK(memory_stats().fresh == 1);
    }
    CHECK(!arena->used);
    CHECK(memory_stats().allocated == 0);
    CHECK(memory_stats().cached == 8192);
  });
  cleave::detail::host_memory() = nullptr;
}

TEST_CASE("cached memory is poisoned, and so is the end of a block in use") {
#if defined(CLEAVE_POISONS_MEMORY)
  on_new_rank([] {
    const std::uint8_t* data = nullptr;
    {
      const Tensor<std::uint8_t, 1> x({5000});  // in a block of 5120 bytes
      data = x.data();
      CHECK(!__asan_address_is_poisoned(data));
      CHECK(!__asan_address_is_poisoned(data + 4999));
      CHECK(__asan_address_is_poisoned(data + 5000));
      CHECK(__asan_address_is_poisoned(data + 5119));
    }
    CHECK(__asan_address_is_poisoned(data));
    CHECK(__asan_address_is_poisoned(data + 4999));
    const Tensor<std::uint8_t, 1> y({5120});
    CHECK(y.data() == data);
    CHECK(!__asan_address_is_poisoned(data));
    CHECK(!__asan_address_is_poisoned(data + 5119));
  });
#else
  skip("only AddressSanitizer can tell");
#endif
}
