// A text as numbers: one per distinct character.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <cleave/cleave.hpp>

#include "options.hpp"

namespace gpt {

using cleave::index_t;

class Text {
 public:
  /// @throws UsageError if the file cannot be read, or has at most `least` characters
  Text(const std::string& path, index_t least) {
    std::ifstream file(path, std::ios::binary);
    const std::string read{std::istreambuf_iterator<char>(file), {}};
    if (!file.is_open() || index_t(read.size()) <= least)
      throw UsageError("--text requires a file of more than " + std::to_string(least) +
                       " characters; '" + path + "' has " + std::to_string(read.size()));
    characters_ = read;
    std::sort(characters_.begin(), characters_.end());
    characters_.erase(std::unique(characters_.begin(), characters_.end()), characters_.end());
    for (const char c : read) tokens_.push_back(index_t(characters_.find(c)));
  }

  index_t size() const { return index_t(tokens_.size()); }
  index_t vocabulary() const { return index_t(characters_.size()); }
  index_t token(index_t i) const { return tokens_[std::size_t(i)]; }
  char character(index_t token) const { return characters_[std::size_t(token)]; }

 private:
  std::string characters_;  ///< the distinct characters, sorted
  std::vector<index_t> tokens_;
};

template <class Mesh>
using Tokens =
    cleave::DTensor<index_t, 2, Mesh, cleave::Placements<cleave::Shard<0>, cleave::Replicate>>;

/// Pieces of a text on a mesh, rows sharded over dp, and the character that follows each of theirs.
template <class Mesh>
struct Batch {
  Tokens<Mesh> x, next;

  /// The pieces depend on `draw` only, not on the mesh.
  Batch(const Text& text, index_t rows, index_t context, std::uint64_t draw, const Mesh& mesh)
      : x(cleave::empty<index_t>({rows, context}, mesh, cleave::Shard<0>{}, cleave::Replicate{})),
        next(cleave::empty<index_t>({rows, context}, mesh, cleave::Shard<0>{},
                                    cleave::Replicate{})) {
    cleave::RandomState state{1, draw};
    const auto places = cleave::rand<double>({rows}, state);
    const index_t first = x.local_box().begin[0];
    for (index_t i = 0; i < x.to_local().extent(0); ++i) {
      const index_t at = index_t(places(first + i) * double(text.size() - context));
      for (index_t j = 0; j < context; ++j) {
        x.to_local()(i, j) = text.token(at + j);
        next.to_local()(i, j) = text.token(at + j + 1);
      }
    }
  }
};

}  // namespace gpt
