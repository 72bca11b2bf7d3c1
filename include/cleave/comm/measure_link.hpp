// What communication costs among the ranks of a group, measured (CLEAVE_TUNE=measure, cleave-tune).
#pragma once

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/machine.hpp>

namespace cleave::detail {

/// Times short and long all-gathers, in some tenths of a second where one takes less than 10 ms.
///
/// @param all  a group of more ranks that measure, at the same time: their costliest group counts
/// @return     the same on all ranks of `all`; nothing known where groups have one rank
/// @collective every rank of `all`
LinkCosts measure_link(Communicator& group, Communicator& all);

}  // namespace cleave::detail

#if !CLEAVE_COMPILED
#include <cleave/comm/measure_link_body.hpp>
#endif
