// Shows a sharding as text: which ranks own which part of a global array.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <iosfwd>
#include <string>
#include <vector>

#include <cleave/dtensor/dtensor.hpp>

namespace cleave::inline v0 {

namespace detail {

// Constrained to one type, the templates are compiled only where they are called.

/// The indices of a dimension at which what follows belongs to other ranks, ascending, and its
/// extent.
template <std::same_as<DimOwnership> D>
std::vector<index_t> cuts(const D& dim) {
  std::vector<index_t> at;
  for (index_t i = 0; i < dim.extent; i += dim.place(i).run) at.push_back(i);
  at.push_back(dim.extent);
  return at;
}

/// "f32[8, 4@dp] sum over tp on dp=2 x tp=2"
inline std::string type_text(DType type, const Shape& shape, const Layout& layout,
                             const MeshState& mesh) {
  const auto names_where = [&](const auto& chosen) {
    std::string names;
    for (int a = 0; a < layout.axes; ++a)
      if (chosen(layout[a])) names += (names.empty() ? "" : ",") + mesh.name(a);
    return names;
  };
  std::string text = std::string(short_name_of(type)) + "[";
  for (int d = 0; d < shape.dims; ++d) {
    const std::string axes = names_where([&](const Placement& p) { return p.shards(d); });
    text += (d > 0 ? ", " : "") + std::to_string(shape[d]) + (axes.empty() ? "" : "@" + axes);
  }
  text += "]";
  for (const ReduceOp op :
       {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min, ReduceOp::product}) {
    const std::string axes =
        names_where([&](const Placement& p) { return p.is_partial() && p.op == op; });
    if (!axes.empty()) text += std::string(" ") + name_of(op) + " over " + axes;
  }
  return text + " on " + mesh.describe();
}

inline std::string padded(std::string text, std::size_t width) {
  text.resize(text.size() < width ? width : text.size(), ' ');
  return text;
}

/// One line per row of parts, one cell per column of parts, the owners' ranks in each cell.
template <std::same_as<Layout> L>
std::string draw(const L& layout, const Shape& shape, const MeshState& mesh) {
  const auto ownership = [&](int d) {
    return DimOwnership(layout, StepLayout{}.order, d, shape[d], mesh.extents());
  };
  const bool wide = shape.dims > 1;  // a vector is drawn as one row
  const std::vector<index_t> rows = wide ? cuts(ownership(0)) : std::vector<index_t>{0, 1};
  const int across = wide ? 1 : 0;
  const std::vector<index_t> columns =
      shape.dims > 0 ? cuts(ownership(across)) : std::vector<index_t>{0, 1};
  const auto owns = [&](const Shape& at, int d, index_t index) {
    const DimOwnership dim = ownership(d);
    return dim.place(index).parts == dim.parts_of(at);
  };
  const auto has_elements = [&](const Shape& at) {
    return shape.dims == 0 || local_shape(layout, shape, mesh.extents(), at).product() > 0;
  };

  const auto range = [](const std::vector<index_t>& at, std::size_t i) {
    return std::to_string(at[i]) + ":" + std::to_string(at[i + 1]);
  };
  std::vector<std::vector<std::string>> table;
  table.push_back({std::string()});
  for (std::size_t j = 0; j + 1 < columns.size(); ++j) table[0].push_back(range(columns, j));
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    table.push_back({wide ? range(rows, i) : std::string()});
    for (std::size_t j = 0; j + 1 < columns.size(); ++j) {
      std::string owners;
      for (std::size_t r = 0; r < mesh.world_ranks().size(); ++r) {
        const Shape at = coordinate_of(mesh.extents(), index_t(r));
        if (!has_elements(at) || (wide && !owns(at, 0, rows[i])) ||
            (shape.dims > 0 && !owns(at, across, columns[j])))
          continue;
        if (!owners.empty()) owners += ',';
        owners += std::to_string(mesh.world_ranks()[r]);
      }
      table.back().push_back(owners);
    }
  }
  std::string text;
  for (const auto& line : table) {
    std::string row;
    for (std::size_t j = 0; j < line.size(); ++j) {
      std::size_t width = 0;
      for (const auto& other : table) width = other[j].size() > width ? other[j].size() : width;
      row += (j == 0 ? "" : " | ") + padded(line[j], width);
    }
    while (!row.empty() && row.back() == ' ') row.pop_back();
    text += row + "\n";
  }
  return text;
}

}  // namespace detail

/// A table of the parts of `x`: rows are ranges of dimension 0, columns ranges of dimension 1; a
/// cell lists the world ranks that hold values there (several for replicas and partials).
///
/// Further dimensions are not drawn: a cell then lists every rank that owns some of its elements.
/// @collective none
template <class T, int Rank, class Mesh, class P>
std::string visualize_sharding(const DTensor<T, Rank, Mesh, P>& x) {
  return detail::draw(x.actual_layout(), Shape(x.shape()), x.mesh().state());
}

/// The type with its extents in short notation: `f32[1797@dp, 64@tp] on dp=2 x tp=2`.
///
/// The axes that shard a dimension follow its extent; reductions that are pending follow the shape:
/// `f32[8, 4@dp] sum over tp on dp=2 x tp=2`.
/// @collective none
template <class T, int Rank, class Mesh, class P>
std::string type_text(const DTensor<T, Rank, Mesh, P>& x) {
  return detail::type_text(dtype_of<T>(), Shape(x.shape()), x.layout, x.mesh().state());
}

/// The same as `type_text`; for the elements, use `to_string(x.to_local())` or
/// `to_string(x.full_tensor())`.
template <class T, int Rank, class Mesh, class P>
std::string to_string(const DTensor<T, Rank, Mesh, P>& x) {
  return type_text(x);
}

/// Writes `to_string(x)`.
/// @collective none
template <class Traits, class T, int Rank, class Mesh, class P>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const DTensor<T, Rank, Mesh, P>& x) {
  return out << to_string(x);
}

/// Prints the type of x on the first rank of its mesh.
/// @collective none
template <class T, int Rank, class Mesh, class P>
void print(const DTensor<T, Rank, Mesh, P>& x) {
  const MeshState& mesh = x.mesh().state();
  if (mesh.world_rank() == mesh.world_ranks()[0]) std::printf("%s\n", type_text(x).c_str());
}

}  // namespace cleave::inline v0
