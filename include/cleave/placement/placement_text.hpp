// Placements as short texts: "S0,R".
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/placement/placement.hpp>

namespace cleave::inline v0 {

/// A layout in short: R (Replicate), S0 (Shard<0>), B0 (Balanced<0>), C0:64 (BlockCyclic<0, 64>)
/// and O1:0 (Owned<1, 0>), separated by commas.
/// @pre neither partials nor cut points
inline std::string short_text(const Layout& layout) {
  std::string text;
  for (int a = 0; a < layout.axes; ++a) {
    const Placement& p = layout[a];
    const std::string dim = std::to_string(int(p.dim)), number = std::to_string(p.number);
    if (a > 0) text += ',';
    switch (p.kind) {
      case PlacementKind::replicate: text += 'R'; break;
      case PlacementKind::shard: text += 'S' + dim; break;
      case PlacementKind::balanced: text += 'B' + dim; break;
      case PlacementKind::block_cyclic: text += 'C' + dim + ':' + number; break;
      case PlacementKind::owned: text += 'O' + number + ':' + dim; break;
      case PlacementKind::cuts:
      case PlacementKind::partial: break;
    }
  }
  return text;
}

namespace detail {

/// Reads one placement at a time of a text.
class PlacementReader {
 public:
  PlacementReader(const char* operation, std::string_view text)
      : operation_(operation), text_(text) {}

  /// @param dims  of the array; @param ranks  along the axis
  Placement read(int dims, index_t ranks) {
    const char kind = next();
    if (kind == 'R') return Placement::replicate();
    if (kind == 'S') return Placement::shard(number(0, dims - 1, "a dimension"));
    if (kind == 'B') return Placement::balanced(number(0, dims - 1, "a dimension"));
    if (kind == 'C') {
      const int dim = number(0, dims - 1, "a dimension");
      require(':');
      return Placement::block_cyclic(dim, number(1, INT32_MAX, "a block"));
    }
    if (kind == 'O') {
      const int owner = number(0, int(ranks) - 1, "a rank of the axis");
      require(':');
      return Placement::owned(owner, number(0, dims - 1, "a dimension"));
    }
    refuse("R, S, B, C or O");
  }

  void require(char wanted) {
    if (next() != wanted) refuse(std::string("'") + wanted + "'");
  }
  void require_end() {
    if (next() != '\0') refuse("the end");
  }

 private:
  /// The next character that is not blank; 0 at the end.
  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    last_ = at_;
    if (at_ < text_.size()) ++at_;
    return c;
  }
  int number(int least, int most, const char* what) {
    last_ = at_;
    int value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || value < least || value > most)
      refuse(std::string(what) + " from " + std::to_string(least) + " to " + std::to_string(most));
    at_ = std::size_t(end - text_.data());
    return value;
  }
  [[noreturn]] void refuse(const std::string& expected) const {
    throw Error(operation_, "placements '" + std::string(text_) + "': expected " + expected +
                                " at character " + std::to_string(last_ + 1));
  }

  const char* operation_;
  std::string_view text_;
  std::size_t at_ = 0, last_ = 0;
};

}  // namespace detail

/// The layout of a text. @see short_text
///
/// @param operation  begins the message of an error
/// @param mesh       the ranks along each axis; as many placements
/// @throws Error     if the text is none, or names a dimension or rank that does not exist, with
///                   the place in the text
inline Layout layout_of_text(const char* operation, std::string_view text, int dims,
                             const Shape& mesh) {
  detail::PlacementReader reader(operation, text);
  Layout layout = Layout::replicated(mesh.dims);
  for (int a = 0; a < mesh.dims; ++a) {
    if (a > 0) reader.require(',');
    layout[a] = reader.read(dims, mesh[a]);
  }
  reader.require_end();
  return layout;
}

}  // namespace cleave::inline v0
