// What every backend must do beyond single calls, as functions of a World: calls that run together,
// the order of addends, subgroups of subgroups, long sequences, lengths that differ between ranks.
// Collective over the world; every rank makes checks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/tensor/tensor.hpp>

#include "collective_cases.hpp"

namespace cleave::testing {

/// Calls of several kinds that run together, with and without a long all_reduce among them.
inline void together_cases(World& world) {
  const int n = world.size(), rank = world.rank();
  const std::vector<Box> pieces = uneven_pieces(n, 0, 3);
  const index_t along = uneven_begin(n), begin = uneven_begin(rank), mine = uneven(rank);
  const auto value = [&](index_t i, index_t j) { return sample<float>(rank, i, j); };
  const auto sum = [&](index_t i, index_t j) {
    return reduced<float>(ReduceOp::sum, n, [&](int r) { return sample<float>(r, i, j); });
  };
  for (const index_t rows : {2, 90, 800}) {
    const Field<float> addends(rows, 91, Style::margin, value);
    const Field<float> in_place(5, 7, Style::dense, value), scalar(1, 1, Style::dense, value);
    const Field<float> whole(along, 3, Style::transposed, value), part(mine, 3, Style::dense);
    const Field<float> received(4, 4, Style::every_second);
    const Field<float> sent(4, 4, Style::dense, value);
    std::vector<Collective> calls(5);
    calls[0].kind = calls[1].kind = calls[4].kind = CollectiveKind::all_reduce;
    calls[0].source = in_place.view(), calls[0].destination = in_place.view();
    calls[1].source = addends.view(), calls[1].destination = addends.view();
    calls[2].kind = CollectiveKind::broadcast;
    calls[2].root = n - 1;
    calls[2].source = sent.view(), calls[2].destination = received.view();
    calls[3].kind = CollectiveKind::reduce_scatter;
    calls[3].source = whole.view(), calls[3].destination = part.view(), calls[3].pieces = pieces;
    calls[4].source = scalar.view(), calls[4].destination = scalar.view();
    all_ranks(world).run_all(calls);
    CHECK(in_place.difference(sum) == "");
    CHECK(addends.difference(sum) == "");
    CHECK(scalar.difference(sum) == "");
    CHECK(part.difference([&](index_t i, index_t j) { return sum(begin + i, j); }) == "");
    CHECK(received.difference([&](index_t i, index_t j) {
      return rank == n - 1 ? Field<float>::mark() : sample<float>(n - 1, i, j);
    }) == "");
    all_ranks(world).run_all({});
    all_ranks(world).run_all(std::vector<Collective>(3));  // barriers
  }
}

/// Sums that depend on the order of their addends must use rank order, on every rank, in every run,
/// for short and long calls.
inline void rank_order_cases(World& world) {
  const int n = world.size(), rank = world.rank();
  world.communicator().state().reproducible = true;  // the ranks may be on several nodes
  const auto addend = [](int r, index_t i) {
    const float large = i % 2 ? 1e8f : -1e8f;  // absorbs a small addend that follows it
    return r % 3 == 0 ? 1.0f + float(i % 5) : r % 3 == 1 ? large : -large;
  };
  for (const index_t count : {index_t(9), index_t(20001)}) {
    const Tensor<float, 1> addends({count});
    for (index_t i = 0; i < count; ++i) addends(i) = addend(rank, i);
    const auto source = addends.to(TestDevice{});
    const Tensor<float, 1, TestDevice> sum({count}), piece({count});
    const Tensor<half, 1, TestDevice> short_source({count}), short_sum({count});
    short_source.fill_(half(rank == 0 ? 2048.0f : 1.0f));
    std::vector<Box> pieces(std::size_t(n), Box{Shape::filled(1, 0), Shape::filled(1, 0)});
    pieces.back() = Box::of(Shape::filled(1, count));
    for (int run = 0; run < 3; ++run) {
      Collective c = call(CollectiveKind::all_reduce);
      c.source = source.view();
      c.destination = sum.view();
      all_ranks(world).run(c);
      c.source = short_source.view();
      c.destination = short_sum.view();
      all_ranks(world).run(c);
      c = call(CollectiveKind::reduce_scatter);
      c.source = source.view();
      c.pieces = pieces;
      if (rank == n - 1) c.destination = piece.view();
      else c.destination = View::dense(nullptr, DType::float32, Shape::filled(1, 0));
      all_ranks(world).run(c);
      const Tensor<float, 1> whole = sum.to(Host{}), last = piece.to(Host{});
      const Tensor<half, 1> shorts = short_sum.to(Host{});
      index_t wrong = 0;
      for (index_t i = 0; i < count; ++i) {
        float expected = addend(0, i);
        for (int r = 1; r < n; ++r) expected = expected + addend(r, i);
        wrong += whole(i) != expected;
        if (rank == n - 1) wrong += last(i) != expected;
        wrong += float(shorts(i)) != float(half(2048.0f + float(n - 1)));
      }
      CHECK(wrong == 0);
    }
  }
}

/// Subgroups of subgroups, in other rank orders, repeatedly, at the same time.
inline void subgroup_cases(World& world) {
  const int n = world.size(), rank = world.rank();
  std::vector<int> parity, reversed, alone{rank};
  for (int r = rank % 2; r < n; r += 2) parity.push_back(r);
  for (int r = n; r-- > 0;) reversed.push_back(r);
  const auto sum_of_ranks = [](Communicator& group, int addend) {
    const auto value = Tensor<std::int64_t, 1>({1}, {addend}).to(TestDevice{});
    Collective c = call(CollectiveKind::all_reduce);
    c.source = value.view();
    c.destination = value.view();
    group.run(c);
    return value.item();
  };

  const auto half_of = all_ranks(world).subgroup(parity, "half");
  CHECK(half_of->label() == "half");
  CHECK(half_of->size() == int(parity.size()));
  CHECK(half_of->rank() == rank / 2);
  std::int64_t expected = 0;
  for (const int r : parity) expected += 100 + r;
  CHECK(sum_of_ranks(*half_of, 100 + rank) == expected);

  const auto backwards = all_ranks(world).subgroup(reversed, "backwards");
  CHECK(backwards->rank() == n - 1 - rank);
  gather_case<float>(*backwards, CollectiveKind::all_gather, 0, 0, Style::dense);

  const auto again = all_ranks(world).subgroup(parity, "again");
  for (int i = 0; i < 20; ++i) {
    CHECK(sum_of_ranks(*half_of, 100 + rank) == expected);
    CHECK(sum_of_ranks(*again, 1) == index_t(parity.size()));
    CHECK(sum_of_ranks(all_ranks(world), 1) == n);
  }

  std::vector<int> first_two;
  for (int r = 0; r < half_of->size() && r < 2; ++r) first_two.push_back(r);
  if (half_of->rank() < 2) {
    const auto inner = half_of->subgroup(first_two, "inner");
    CHECK(sum_of_ranks(*inner, 5) == 5 * index_t(first_two.size()));
  }
  CHECK(sum_of_ranks(*all_ranks(world).subgroup(alone, "alone"), 7) == 7);
}

/// Hundreds of collectives of all kinds, one directly after the other.
inline void endurance_cases(World& world, int rounds) {
  std::uint64_t random = 12345;  // the same on all ranks
  const auto below = [&](int limit) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return int((random >> 33) % std::uint64_t(limit));
  };
  Communicator& group = all_ranks(world);
  for (int i = 0; i < rounds; ++i) {
    const int root = below(world.size()), dim = below(2);
    const Style style = all_styles[below(4)];
    const ReduceOp op = all_reductions[below(5)];
    switch (below(9)) {
      case 0: group.run(call(CollectiveKind::barrier)); break;
      case 1: broadcast_case<float>(group, root, style); break;
      case 2: scatter_case<float>(group, root, dim, style); break;
      case 3: gather_case<float>(group, CollectiveKind::gather, root, dim, style); break;
      case 4: gather_case<float>(group, CollectiveKind::all_gather, root, dim, style); break;
      case 5: reduce_scatter_case<float>(group, op, dim, style); break;
      case 6: all_reduce_case<float>(group, op, 1 + below(9), 3, style, style, dim == 0); break;
      case 7: all_reduce_case<float>(group, op, 67, 89, style, style, dim == 0); break;
      case 8: all_to_all_case<float>(group, style); break;
    }
  }
}

/// Calls one directly after the other whose arrays are empty or short on some ranks and long on
/// others: backends treat lengths differently. Arrays have one long dimension of seven.
inline void length_cases(World& world) {
  Communicator& group = world.communicator();
  const int n = group.size(), rank = group.rank();
  constexpr std::array<index_t, 7> lengths{0, 1, 100, 128, 1000, 1025, 20000};
  for (int round = 0; round < 28; ++round) {
    const auto length = [&](int r) {
      return lengths[std::size_t(round / 4 + (round % 2 == 0 ? r : 0)) % lengths.size()];
    };
    const auto shape = [](index_t count) {
      Shape extents = Shape::filled(7, 1);
      extents[5] = count;
      return extents;
    };
    const auto value = [&](int r, index_t i) { return double(100000 * r + i + round); };
    const Tensor<double, 1> reachable({length(rank)});  // by peers, where there is shared memory
    std::vector<double> own(std::size_t(length(rank)));
    double* const source = round % 4 < 2 ? reachable.data() : own.data();
    for (index_t i = 0; i < length(rank); ++i) source[i] = value(rank, i);
    index_t total = 0;
    std::vector<Box> pieces;
    for (int r = 0; r < n; ++r) {
      Box piece = Box::of(shape(length(r)));
      piece.begin[5] = total;
      piece.end[5] = total += length(r);
      pieces.push_back(piece);
    }
    const auto is_piece = [&](int r, const double* elements) {
      index_t equal = 0;
      for (index_t i = 0; i < length(r); ++i) equal += elements[i] == value(r, i);
      return equal == length(r);
    };
    const auto begins = [&](int r) { return pieces[std::size_t(r)].begin[5]; };
    const int root = round % n, left = (rank + n - 1) % n, right = (rank + 1) % n;

    std::vector<double> all(std::size_t(total), -1), some(std::size_t(length(root)), -1);
    Collective c = call(CollectiveKind::all_gather);
    c.source = ConstView::dense(source, DType::float64, shape(length(rank)));
    c.destination = View::dense(all.data(), DType::float64, shape(total));
    c.pieces = pieces;
    c.global_count = total;
    group.run(c);
    for (int r = 0; r < n; ++r) CHECK(is_piece(r, all.data() + begins(r)));

    c.kind = CollectiveKind::gather;
    c.root = root;
    all.assign(all.size(), -1);
    group.run(c);
    for (int r = 0; r < n; ++r)
      if (length(r) > 0) CHECK(is_piece(r, all.data() + begins(r)) == (rank == root));

    group.run(call(CollectiveKind::barrier));
    Collective broadcast = call(CollectiveKind::broadcast);
    broadcast.root = root;
    broadcast.global_count = length(root);
    if (rank == root) broadcast.source = c.source;
    else broadcast.destination = View::dense(some.data(), DType::float64, shape(length(root)));
    group.run(broadcast);
    if (rank != root) CHECK(is_piece(root, some.data()));

    some.assign(std::size_t(length(left)), -1);
    const std::vector<Transfer> sends{
        {right, Box::of(shape(length(rank))), Box::of(shape(length(rank)))}};
    const std::vector<Transfer> receives{
        {left, Box::of(shape(length(left))), Box::of(shape(length(left)))}};
    Collective exchange = call(CollectiveKind::exchange);
    exchange.source = c.source;
    exchange.destination = View::dense(some.data(), DType::float64, shape(length(left)));
    exchange.sends = sends;
    exchange.receives = receives;
    exchange.global_count = total;
    group.run(exchange);
    CHECK(is_piece(left, some.data()));
  }
}

}  // namespace cleave::testing
