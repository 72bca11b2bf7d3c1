// What every backend must do, as functions of a World: each kind of collective, checked against
// hand-written values, with views of every stride, uneven and empty pieces, all types and
// reductions. Collective over the world; every rank makes checks.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/world.hpp>

#include "fields.hpp"

namespace cleave::testing {

inline Collective call(CollectiveKind kind) {
  Collective c;
  c.kind = kind;
  return c;
}

template <class T>
void broadcast_case(Communicator& group, int root, Style style) {
  const auto value = [&](index_t i, index_t j) { return sample<T>(root, i, j); };
  const Field<T> source(5, 7, style, value);
  const Field<T> destination(5, 7, Style::margin);
  Collective c = call(CollectiveKind::broadcast);
  c.root = root;
  if (group.rank() == root) c.source = source.view();
  c.destination = destination.view();
  group.run(c);
  if (group.rank() == root)
    CHECK(destination.difference([](index_t, index_t) { return Field<T>::mark(); }) == "");
  else CHECK(destination.difference(value) == "");
}

template <class T>
void scatter_case(Communicator& group, int root, int dim, Style style) {
  const int n = group.size(), rank = group.rank();
  const index_t along = uneven_begin(n), begin = uneven_begin(rank), mine = uneven(rank);
  const std::vector<Box> pieces = uneven_pieces(n, dim, 3);
  const Field<T> whole(dim == 0 ? along : 3, dim == 0 ? 3 : along, style,
                       [&](index_t i, index_t j) { return sample<T>(root, i, j); });
  const Field<T> piece(dim == 0 ? mine : 3, dim == 0 ? 3 : mine, style);
  Collective c = call(CollectiveKind::scatter);
  c.root = root;
  if (rank == root) c.source = whole.view(), c.pieces = pieces;
  c.destination = piece.view();
  group.run(c);
  CHECK(piece.difference([&](index_t i, index_t j) {
    return dim == 0 ? sample<T>(root, begin + i, j) : sample<T>(root, i, begin + j);
  }) == "");
}

/// The element (i, j) of all ranks' samples gathered along `dim`.
template <class T>
T gathered_sample(int dim, index_t i, index_t j) {
  const index_t at = dim == 0 ? i : j;
  int owner = 0;
  while (uneven_begin(owner + 1) <= at) ++owner;
  const index_t inside = at - uneven_begin(owner);
  return dim == 0 ? sample<T>(owner, inside, j) : sample<T>(owner, i, inside);
}

/// gather and all_gather: every rank's piece, marked with its rank, arrives in its place.
template <class T>
void gather_case(Communicator& group, CollectiveKind kind, int root, int dim, Style style) {
  const int n = group.size(), rank = group.rank();
  const index_t along = uneven_begin(n), mine = uneven(rank);
  const bool receives = kind == CollectiveKind::all_gather || rank == root;
  const std::vector<Box> pieces = uneven_pieces(n, dim, 4);
  const Field<T> piece(dim == 0 ? mine : 4, dim == 0 ? 4 : mine, style,
                       [&](index_t i, index_t j) { return sample<T>(rank, i, j); });
  const Field<T> whole(dim == 0 ? along : 4, dim == 0 ? 4 : along, style);
  Collective c = call(kind);
  c.root = root;
  c.source = piece.view();
  if (receives) c.destination = whole.view(), c.pieces = pieces;
  group.run(c);
  CHECK(whole.difference([&](index_t i, index_t j) {
    return receives ? gathered_sample<T>(dim, i, j) : Field<T>::mark();
  }) == "");
}

/// all_gather in place.
template <class T>
void all_gather_in_place_case(Communicator& group, int dim, Style style) {
  const index_t along = uneven_begin(group.size());
  const std::vector<Box> pieces = uneven_pieces(group.size(), dim, 4);
  const Box& own = pieces[std::size_t(group.rank())];
  const auto value = [&](index_t i, index_t j) {
    const index_t at = dim == 0 ? i : j;
    return at >= own.begin[dim] && at < own.end[dim] ? gathered_sample<T>(dim, i, j)
                                                     : Field<T>::mark();
  };
  const Field<T> whole(dim == 0 ? along : 4, dim == 0 ? 4 : along, style, value);
  Collective c = call(CollectiveKind::all_gather);
  c.source = whole.view()[own];
  c.destination = whole.view();
  c.pieces = pieces;
  group.run(c);
  CHECK(whole.difference([&](index_t i, index_t j) { return gathered_sample<T>(dim, i, j); }) ==
        "");
}

template <class T>
void reduce_scatter_case(Communicator& group, ReduceOp op, int dim, Style style,
                         index_t across = 3) {
  const int n = group.size(), rank = group.rank();
  const index_t along = uneven_begin(n), begin = uneven_begin(rank), mine = uneven(rank);
  const std::vector<Box> pieces = uneven_pieces(n, dim, across);
  const auto addend = [&](int r, index_t i, index_t j) {
    return op == ReduceOp::product ? number<T>(1 + (r + i + j) % 2) : sample<T>(r, i, j);
  };
  const auto value = [&](index_t i, index_t j) { return addend(rank, i, j); };
  const Field<T> source(dim == 0 ? along : across, dim == 0 ? across : along, style, value);
  const Field<T> piece(dim == 0 ? mine : across, dim == 0 ? across : mine, style);
  Collective c = call(CollectiveKind::reduce_scatter);
  c.op = op;
  c.source = source.view();
  c.destination = piece.view();
  c.pieces = pieces;
  group.run(c);
  CHECK(source.difference(value) == "");
  CHECK(piece.difference([&](index_t i, index_t j) {
    const index_t x = dim == 0 ? begin + i : i, y = dim == 0 ? j : begin + j;
    return reduced<T>(op, n, [&](int r) { return addend(r, x, y); });
  }) == "");
}

template <class T>
void all_reduce_case(Communicator& group, ReduceOp op, index_t rows, index_t columns, Style from,
                     Style to, bool in_place) {
  const int n = group.size(), rank = group.rank();
  const auto addend = [&](int r, index_t i, index_t j) {
    return op == ReduceOp::product ? number<T>(1 + (r + i + j) % 2) : sample<T>(r, i, j);
  };
  const auto value = [&](index_t i, index_t j) { return addend(rank, i, j); };
  const Field<T> source(rows, columns, from, value);
  const Field<T> separate(rows, columns, to);
  const Field<T>& destination = in_place ? source : separate;
  Collective c = call(CollectiveKind::all_reduce);
  c.op = op;
  c.source = source.view();
  c.destination = destination.view();
  group.run(c);
  if (!in_place) CHECK(source.difference(value) == "");
  CHECK(destination.difference([&](index_t i, index_t j) {
    return reduced<T>(op, n, [&](int r) { return addend(r, i, j); });
  }) == "");
}

/// Turns slabs of rows into slabs of columns.
template <class T>
void all_to_all_case(Communicator& group, Style style) {
  const int n = group.size(), rank = group.rank();
  const index_t extent = uneven_begin(n), begin = uneven_begin(rank), mine = uneven(rank);
  const Field<T> rows(mine, extent, style,
                      [&](index_t i, index_t j) { return sample<T>(0, begin + i, j); });
  const Field<T> columns(extent, mine, style);
  std::vector<Transfer> sends, receives;
  for (int r = 0; r < n; ++r) {
    const index_t other = uneven_begin(r), width = uneven(r);
    sends.push_back({r, box(0, mine, other, other + width), box(begin, begin + mine, 0, width)});
    receives.push_back({r, box(0, width, begin, begin + mine), box(other, other + width, 0, mine)});
  }
  Collective c = call(CollectiveKind::all_to_all);
  c.source = rows.view();
  c.destination = columns.view();
  c.sends = sends;
  c.receives = receives;
  group.run(c);
  CHECK(columns.difference([&](index_t i, index_t j) { return sample<T>(0, i, begin + j); }) == "");
}

/// Row r of every rank goes to rank r; all rows have `length` elements.
template <class T>
void equal_parts_case(Communicator& group, index_t length, Style style) {
  const int n = group.size(), rank = group.rank();
  const auto value = [](index_t from, index_t to, index_t j) {
    return number<T>(100'000 * from + 10'000 * to + j);
  };
  const Field<T> source(n, length, style, [&](index_t i, index_t j) { return value(rank, i, j); });
  const Field<T> destination(n, length, style);
  std::vector<Transfer> sends, receives;
  for (int r = 0; r < n; ++r) {
    sends.push_back({r, box(r, r + 1, 0, length), box(rank, rank + 1, 0, length)});
    receives.push_back({r, box(rank, rank + 1, 0, length), box(r, r + 1, 0, length)});
  }
  Collective c = call(CollectiveKind::all_to_all);
  c.source = source.view();
  c.destination = destination.view();
  c.sends = sends;
  c.receives = receives;
  c.even = true;
  c.global_count = n * n * length;
  group.run(c);
  CHECK(destination.difference([&](index_t i, index_t j) { return value(i, rank, j); }) == "");
}

/// A ring: each rank sends two boxes to its right neighbour and keeps one, and rank 0 sends another
/// box to the last rank.
template <class T>
void exchange_case(Communicator& group, Style style) {
  const int n = group.size(), rank = group.rank();
  const int right = (rank + 1) % n, left = (rank + n - 1) % n;
  const Field<T> source(4, 6, style, [&](index_t i, index_t j) { return sample<T>(rank, i, j); });
  const Field<T> destination(6, 6, style);
  const auto ring = [](int peer) {
    return std::vector<Transfer>{{peer, box(0, 2, 0, 3), box(3, 5, 1, 4)},
                                 {peer, box(2, 2, 0, 6), box(0, 0, 0, 6)},
                                 {peer, box(2, 4, 1, 6), box(0, 2, 0, 5)}};
  };
  std::vector<Transfer> sends = ring(right), receives = ring(left);
  const Transfer stays{rank, box(3, 4, 0, 6), box(2, 3, 0, 6)};
  sends.push_back(stays);
  receives.push_back(stays);
  if (rank == 0) sends.push_back({n - 1, box(0, 1, 5, 6), box(5, 6, 5, 6)});
  if (rank == n - 1) receives.push_back({0, box(0, 1, 5, 6), box(5, 6, 5, 6)});
  Collective c = call(CollectiveKind::exchange);
  c.source = source.view();
  c.destination = destination.view();
  c.sends = sends;
  c.receives = receives;
  group.run(c);
  CHECK(destination.difference([&](index_t i, index_t j) {
    if (i >= 3 && i < 5 && j >= 1 && j < 4) return sample<T>(left, i - 3, j - 1);
    if (i < 2 && j < 5) return sample<T>(left, i + 2, j + 1);
    if (i == 2) return sample<T>(rank, 3, j);
    if (i == 5 && j == 5 && rank == n - 1) return sample<T>(0, 0, 5);
    return Field<T>::mark();
  }) == "");
}

inline void broadcast_cases(World& world) {
  for (int root = 0; root < world.size(); ++root)
    for (const Style style : all_styles) {
      broadcast_case<float>(all_ranks(world), root, style);
      broadcast_case<std::complex<double>>(all_ranks(world), root, style);
    }
}

inline void scatter_cases(World& world) {
  for (int root = 0; root < world.size(); ++root)
    for (const int dim : {0, 1})
      for (const Style style : all_styles) {
        scatter_case<double>(all_ranks(world), root, dim, style);
        scatter_case<std::int8_t>(all_ranks(world), root, dim, style);
      }
}

inline void gather_cases(World& world) {
  for (int root = 0; root < world.size(); ++root)
    for (const int dim : {0, 1})
      for (const Style style : all_styles)
        gather_case<float>(all_ranks(world), CollectiveKind::gather, root, dim, style);
}

inline void all_gather_cases(World& world) {
  for (const int dim : {0, 1})
    for (const Style style : all_styles) {
      gather_case<float>(all_ranks(world), CollectiveKind::all_gather, 0, dim, style);
      gather_case<half>(all_ranks(world), CollectiveKind::all_gather, 0, dim, style);
      all_gather_in_place_case<double>(all_ranks(world), dim, style);
    }
}

inline void reduce_scatter_cases(World& world) {
  for_element_types([&](auto zero) {
    using T = decltype(zero);
    for (const ReduceOp op : all_reductions)
      if (has_reduction<T>(op)) {
        reduce_scatter_case<T>(all_ranks(world), op, 0, Style::dense);
        reduce_scatter_case<T>(all_ranks(world), op, 1, Style::margin);
      }
  });
  for (const int dim : {0, 1})
    for (const Style style : all_styles)
      reduce_scatter_case<double>(all_ranks(world), ReduceOp::sum, dim, style, 5003);
}

inline void all_reduce_cases(World& world) {
  Communicator& group = all_ranks(world);
  for_element_types([&](auto zero) {
    using T = decltype(zero);
    for (const ReduceOp op : all_reductions)
      if (has_reduction<T>(op)) {
        all_reduce_case<T>(group, op, 3, 5, Style::dense, Style::margin, false);
        all_reduce_case<T>(group, op, 3, 5, Style::dense, Style::dense, true);
        all_reduce_case<T>(group, op, 151, 149, Style::dense, Style::dense, true);
      }
  });
  // long enough for every backend to divide the reduction among the ranks
  all_reduce_case<float>(group, ReduceOp::sum, 257, 263, Style::margin, Style::transposed, false);
  all_reduce_case<float>(group, ReduceOp::avg, 257, 263, Style::every_second, Style::dense, true);
  for (const bool in_place : {false, true})
    for (const Style from : all_styles)
      for (const Style to : all_styles) {
        all_reduce_case<float>(group, ReduceOp::sum, 0, 5, from, to, in_place);
        all_reduce_case<float>(group, ReduceOp::avg, 1, 1, from, to, in_place);
        all_reduce_case<float>(group, ReduceOp::sum, 83, 101, from, to, in_place);
        all_reduce_case<double>(group, ReduceOp::max, 2, 2049, from, to, in_place);
      }
}

inline void exchange_cases(World& world) {
  for (const Style style : all_styles) {
    all_to_all_case<float>(all_ranks(world), style);
    all_to_all_case<std::complex<float>>(all_ranks(world), style);
    exchange_case<double>(all_ranks(world), style);
    exchange_case<bool>(all_ranks(world), style);
  }
}

}  // namespace cleave::testing
