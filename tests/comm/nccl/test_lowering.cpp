// The NCCL calls of every redistribution, one by one, on ranks that run it: functions, counts,
// communicators and streams are compared with what follows from index lists, values with naive
// loops. The stand-ins for NCCL and CUDA record a rank's calls and also move the data.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>

#include "cuda_stand_in/recorder.hpp"
#include "cuda_stand_in/stand_in.hpp"
#include "device.hpp"
#include "naive.hpp"
#include "nccl_stand_in/stand_in.hpp"
#include "over_nccl.hpp"

using namespace cleave;
using cleave::testing::elements_of;
using cleave::testing::over_nccl;
using cleave::testing::placed;
using naive::Indices;

namespace {

using Lines = std::vector<std::string>;

/// The number of elements of one list that are also in the other.
std::size_t common(const std::vector<Indices>& a, std::vector<Indices> b) {
  std::sort(b.begin(), b.end());
  return std::size_t(std::count_if(a.begin(), a.end(), [&](const Indices& index) {
    return std::binary_search(b.begin(), b.end(), index);
  }));
}

/// The indices of the rank at `at` under a step's layout, whose axes apply in the order it gives.
std::vector<Indices> held(const StepLayout& layout, const Indices& shape, const Indices& mesh,
                          const Indices& at) {
  std::vector<Indices> lists;
  Indices extents;
  for (int d = 0; d < int(shape.size()); ++d) {
    Indices list;
    for (index_t i = 0; i < shape[std::size_t(d)]; ++i) list.push_back(i);
    for (int i = 0; i < layout.layout.axes; ++i) {
      const auto a = std::size_t(layout.order[std::size_t(i)]);
      if (!layout.layout[int(a)].shards(d)) continue;
      const Indices piece = naive::chunks(list, mesh[a])[std::size_t(at[a])];
      list = piece;
    }
    lists.push_back(list);
    extents.push_back(index_t(list.size()));
  }
  std::vector<Indices> result = naive::all_indices(extents);
  for (Indices& index : result)
    for (std::size_t d = 0; d < index.size(); ++d) index[d] = lists[d][std::size_t(index[d])];
  return result;
}

/// The calls that a rank must issue for a step.
Lines expected(const Step& step, const MeshState& mesh, const Indices& shape,
               const std::string& stream) {
  const Indices extents = naive::to_indices(mesh.extents());
  const Communicator& group = *mesh.group(step.axes);
  const std::string where = " on " + nccl_stand_in::name_of(nccl_handle(*mesh.group(step.axes)));
  const int n = group.size();
  std::vector<std::vector<Indices>> before, after;
  for (int r = 0; r < n; ++r) {
    const Indices at = naive::to_indices(mesh.member(step.axes, r));
    before.push_back(held(step.from, shape, extents, at));
    after.push_back(held(step.to, shape, extents, at));
  }
  const std::size_t self = std::size_t(group.rank());
  const auto line = [&](const char* function, std::size_t count, const std::string& rest) {
    return std::string(function) + "(" + stream + "): " + std::to_string(count) + " float32" + rest;
  };
  bool even = true;
  for (int r = 1; r < n; ++r)
    even = even && before[std::size_t(r)].size() == before[0].size() &&
           after[std::size_t(r)].size() == after[0].size();
  switch (step.kind) {
    case StepKind::all_reduce:
      if (before[0].empty()) return {};
      return {line("ncclAllReduce", before[self].size(), " sum" + where)};
    case StepKind::reduce_scatter: {
      std::size_t longest = 0;
      for (const auto& piece : after) longest = std::max(longest, piece.size());
      if (longest == 0) return {};
      return {line("ncclReduceScatter", longest, " sum" + where)};
    }
    case StepKind::all_gather: {
      std::size_t longest = 0, total = 0;
      for (const auto& piece : before) {
        longest = std::max(longest, piece.size());
        total += piece.size();
      }
      if (longest == 0) return {};
      // padded if that adds less than a quarter
      if (4 * (longest * std::size_t(n) - total) < total)
        return {line("ncclAllGather", longest, where)};
      break;
    }
    case StepKind::all_to_all: {
      bool equal = true;  // on all ranks of the mesh, so that every rank decides alike
      for (const Indices& anyone : naive::all_indices(extents))
        equal = equal && held(step.from, shape, extents, anyone).size() == before[0].size() &&
                held(step.to, shape, extents, anyone).size() == after[0].size();
      for (int r = 0; r < n; ++r)
        for (int k = 0; k < n; ++k)
          equal = equal && common(before[std::size_t(r)], after[std::size_t(k)]) * std::size_t(n) ==
                               before[std::size_t(r)].size();
      if (equal && !before[0].empty())
        return {line("ncclAlltoAll", before[self].size() / std::size_t(n), where)};
      break;
    }
    default: break;
  }
  return {"exchange"};  // checked by the data that it moves
}

/// Totals of a rank's sends and receives, to check that it receives only what it lacks, and once.
struct Moved {
  std::size_t sent = 0, received = 0, sends = 0, receives = 0;
};

Moved moved_by(const Lines& lines) {
  Moved moved;
  for (const std::string& line : lines) {
    const std::size_t count = std::stoul(line.substr(line.find("): ") + 3));
    if (line.starts_with("ncclSend")) moved.sent += count, ++moved.sends;
    if (line.starts_with("ncclRecv")) moved.received += count, ++moved.receives;
  }
  return moved;
}

/// The calls that move data, without those that create groups and memory at first use.
Lines nccl_lines(const cuda_stand_in::Recording& recording) {
  Lines lines;
  for (const cuda_stand_in::Call& call : recording.calls())
    if (call.function.starts_with("nccl") && call.stream >= 0) lines.push_back(call.text());
  return lines;
}

/// Removes the sends and receives at the beginning of the list. @return the removed calls
Lines take_transfers(Lines& lines) {
  const auto end = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return !line.starts_with("ncclSend") && !line.starts_with("ncclRecv");
  });
  const Lines transfers(lines.begin(), end);
  lines.erase(lines.begin(), end);
  return transfers;
}

/// Runs one redistribution on this rank. @return the number of wrong elements and calls
int wrong(const MeshState& mesh, const Layout& from, const Layout& to, const Indices& shape) {
  const Shape global = naive::shape_of(shape);
  const Indices extents = naive::to_indices(mesh.extents());
  const Indices at = naive::to_indices(mesh.coordinate());
  const auto mine = naive::elements(from, shape, extents, at);
  const Indices where = naive::partial_coordinate(from, at);
  std::vector<float> values;
  for (const Indices& index : mine) values.push_back(float(naive::addend(index, where)));
  Shape local = global;
  for (int d = 0; d < global.dims; ++d)
    local[d] = index_t(naive::owned(from, d, shape, extents, at).size());
  const redistribution::Block block = placed(values, local);
  const Plan plan = make_plan(from, to, global.dims);

  redistribution::Block result;
  Lines issued;
  std::string stream;
  {
    cuda_stand_in::Recording recording;
    stream = "stream " + std::to_string(recording.number_of(cuda::current_stream().get()));
    result = redistribution::run<Cuda>(&plan, from, to, block, {mesh, global, "redistribute"});
    issued = nccl_lines(recording);
  }

  int faults = 0;
  Lines calls = issued;
  for (const Step& step : plan) {
    if (!communicates(step.kind)) continue;
    const Lines wanted = expected(step, mesh, shape, stream);
    if (wanted == Lines{"exchange"}) {
      const Lines transfers = take_transfers(calls);
      const Moved moved = moved_by(transfers);
      const auto had = held(step.from, shape, extents, at), has = held(step.to, shape, extents, at);
      faults += moved.received != has.size() - common(has, had);
      for (const std::string& line : transfers) {
        faults +=
            !line.starts_with("ncclSend(" + stream) && !line.starts_with("ncclRecv(" + stream);
        faults += transfers.size() > 1 && line.find(", in a group") == std::string::npos;
      }
    } else {
      faults +=
          calls.size() < wanted.size() || !std::equal(wanted.begin(), wanted.end(), calls.begin());
      calls.erase(calls.begin(), calls.begin() + long(std::min(wanted.size(), calls.size())));
    }
  }
  faults += !calls.empty();
  if (faults > 0) {
    std::string text;
    for (const std::string& line : issued) text += line + "\n";
    MESSAGE("issued\n", text);
  }

  const auto wanted = naive::elements(to, shape, extents, at);
  const std::vector<float> got = elements_of<float>(result);
  if (got.size() != wanted.size()) return faults + 1000;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    faults += got[i] != naive::value<float>(from, extents, wanted[i]);
  return faults;
}

template <class Mesh>
int check_pairs(const Mesh& mesh, const std::vector<Indices>& shapes) {
  const Placement R = Placement::replicate(), S0 = Placement::shard(0), S1 = Placement::shard(1),
                  P = Placement::partial(ReduceOp::sum);
  int pairs = 0;
  for (const Indices& shape : shapes)
    for (const Layout& from : naive::layouts_over(Mesh::axis_count, {R, S0, S1, P}))
      for (const Layout& to : naive::layouts_over(Mesh::axis_count, {R, S0, S1})) {
        const int faults = wrong(mesh.state(), from, to, shape);
        CHECK_MESSAGE(faults == 0, to_string(from), " -> ", to_string(to), " of ",
                      to_string(naive::shape_of(shape)), " on ", mesh.describe(), ", rank ",
                      mesh.state().world_rank());
        ++pairs;
      }
  return pairs;
}

void report(World& world, int pairs) {
  if (world.rank() == 0) std::printf("nccl.pairs %d on %d ranks\n", pairs, world.size());
}

}  // namespace

TEST_CASE("redistributions on 4 ranks issue the calls that an expert would write") {
  over_nccl({4}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {4}, Cuda{});
    report(world, check_pairs(mesh, {{8, 8}, {7, 5}, {3, 9}}));
  });
}

TEST_CASE("redistributions on 2 x 2 ranks issue the calls that an expert would write") {
  over_nccl({4}, [](World& world) {
    const auto mesh = init_device_mesh<axes::dp, axes::tp>(world, {2, 2}, Cuda{});
    report(world, check_pairs(mesh, {{8, 8}, {7, 5}}));
  });
}

TEST_CASE("redistributions on 2 x 2 x 2 ranks issue the calls that an expert would write") {
  over_nccl({8}, [](World& world) {
    const auto mesh = init_device_mesh<axes::dp, axes::tp, axes::cp>(world, {2, 2, 2}, Cuda{});
    report(world, check_pairs(mesh, {{8, 8}, {9, 5}}));
  });
}
