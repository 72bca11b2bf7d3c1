// Extents of tensors for tests of reductions.
#pragma once

#include <array>

#include <cleave/core/config.hpp>

/// One element; dimensions of extent one and zero; short, long and medium extents in every
/// position.
inline constexpr std::array<cleave::index_t, 3> reduced_extents[] = {
    {2, 3, 5},   {1, 1, 1},   {4, 1, 7},   {0, 3, 2},    {3, 0, 2},    {3, 2, 0},
    {2, 40, 33}, {3, 2, 300}, {300, 2, 3}, {1100, 2, 3}, {2, 1100, 1},
};
