// All-gathers of pieces of any sizes: values, and how they are lowered, which depends on how much
// padding would add and on the version of NCCL. Every rank must lower them alike.
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>

#include "cuda_stand_in/recorder.hpp"
#include "over_nccl.hpp"

using namespace cleave;
using axes::tp;
using cleave::testing::over_nccl;

namespace {

constexpr index_t across = 3;

using Sizes = std::vector<index_t>;

/// All lists of n sizes, each one of those given.
std::vector<Sizes> all_sizes(int n, const Sizes& choices) {
  std::vector<Sizes> lists{{}};
  for (int r = 0; r < n; ++r) {
    std::vector<Sizes> longer;
    for (const Sizes& list : lists)
      for (const index_t size : choices) {
        longer.push_back(list);
        longer.back().push_back(size);
      }
    lists = std::move(longer);
  }
  return lists;
}

/// The calls that every rank should make: "ncclAllGather x 1 of 12".
std::string expected(const Sizes& sizes, int rank, int version) {
  const auto n = index_t(sizes.size());
  const index_t longest = *std::ranges::max_element(sizes);
  const index_t total = std::accumulate(sizes.begin(), sizes.end(), index_t(0));
  const auto filled = [](index_t size) { return size > 0; };
  const index_t senders = std::ranges::count_if(sizes, filled);
  if (total == 0) return "";
  if (4 * (n * longest - total) < total)
    return "ncclAllGather x 1 of " + std::to_string(n * longest * across / n);
  if (version >= NCCL_VERSION(2, 29, 0))
    return "ncclBroadcast x " + std::to_string(senders) + " of " + std::to_string(total * across);
  const index_t mine = sizes[std::size_t(rank)];
  std::string text;
  if (mine > 0)
    text = "ncclSend x " + std::to_string(n - 1) + " of " + std::to_string((n - 1) * mine * across);
  const index_t others = senders - (mine > 0 ? 1 : 0);
  if (others > 0)
    text += (text.empty() ? "" : ", ") + std::string("ncclRecv x ") + std::to_string(others) +
            " of " + std::to_string((total - mine) * across);
  return text;
}

/// The recorded calls in the same form: their number, and the sum of their counts.
std::string made(const cuda_stand_in::Recording& recording) {
  std::string text;
  for (const char* const function : {"ncclAllGather", "ncclBroadcast", "ncclSend", "ncclRecv"}) {
    std::size_t calls = 0, elements = 0;
    for (const cuda_stand_in::Call& call : recording.calls()) {
      const std::string line = call.text();
      if (!line.starts_with(function)) continue;
      ++calls;
      elements += std::stoul(line.substr(line.find("): ") + 3));
    }
    if (calls > 0)
      text += (text.empty() ? "" : ", ") + std::string(function) + " x " + std::to_string(calls) +
              " of " + std::to_string(elements);
  }
  return text;
}

/// Gathers pieces of these sizes along `dim`. @return what is wrong; empty if nothing is
std::string fault_of(Communicator& group, const Sizes& sizes, int dim, int version) {
  const auto oriented = [&](index_t along) {
    return Shape(std::array<index_t, 2>{dim == 0 ? along : across, dim == 0 ? across : along});
  };
  std::vector<Box> pieces;
  index_t begin = 0;
  for (const index_t size : sizes) {
    Box box{oriented(begin), oriented(begin + size)};
    box.begin[1 - dim] = 0;
    pieces.push_back(box);
    begin += size;
  }
  const auto value = [](index_t i, index_t j) { return float(100 * i + j); };
  const Box& own = pieces[std::size_t(group.rank())];
  Tensor<float, 2> mine({own.extents()[0], own.extents()[1]});
  for (index_t i = 0; i < mine.extent(0); ++i)
    for (index_t j = 0; j < mine.extent(1); ++j)
      mine(i, j) = value(own.begin[0] + i, own.begin[1] + j);
  const Shape whole = oriented(begin);
  const auto source = mine.to(Cuda{});
  const Tensor<float, 2, Cuda> destination({whole[0], whole[1]});
  destination.fill_(-1);

  Collective c;
  c.kind = CollectiveKind::all_gather;
  c.source = source.view();
  c.destination = destination.view();
  c.pieces = pieces;
  const cuda_stand_in::Recording recording;
  group.run(c);
  const std::string calls = made(recording), wanted = expected(sizes, group.rank(), version);
  if (calls != wanted) return "calls " + calls + " instead of " + wanted;
  const auto got = destination.to(Host{});
  for (index_t i = 0; i < whole[0]; ++i)
    for (index_t j = 0; j < whole[1]; ++j)
      if (got(i, j) != value(i, j))
        return "(" + std::to_string(i) + ", " + std::to_string(j) + ") is " +
               std::to_string(got(i, j));
  return "";
}

}  // namespace

TEST_CASE(
    "uneven and empty pieces are gathered by one padded call, by broadcasts, or by messages") {
  for (const int version : {NCCL_VERSION(2, 28, 9), NCCL_VERSION(2, 29, 0)})
    over_nccl({1, 2, 3, 4, 5}, [&](World& world) {
      if (world.rank() == 0) nccl_stand_in::set_version(version);
      world.barrier();
      const auto mesh = init_device_mesh<tp>(world, {world.size()}, Cuda{});
      for (const Sizes& sizes : all_sizes(world.size(), {0, 4, 5}))
        for (const int dim : {0, 1}) {
          const std::string fault = fault_of(mesh.communicator(), sizes, dim, version);
          std::string text;
          for (const index_t size : sizes) text += " " + std::to_string(size);
          CHECK_MESSAGE(fault == "", "pieces of", text, " along ", dim, ": ", fault);
        }
    });
  CHECK(cuda_stand_in::take_faults() == "");
}
