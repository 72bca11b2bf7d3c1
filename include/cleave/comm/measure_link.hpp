// Measures communication costs among the ranks of a group (CLEAVE_TUNE=measure).
#pragma once

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/machine.hpp>

namespace cleave::detail {

/// Times short and long all-gathers; takes some tenths of a second if one takes less than 10 ms.
///
/// @param all  all ranks that measure at the same time, in several groups: the costliest group
///             counts
/// @return     the same on all ranks of `all`; unknown costs if groups have one rank
/// @collective every rank of `all`
LinkCosts measure_link(Communicator& group, Communicator& all);

}  // namespace cleave::detail

#if !CLEAVE_COMPILED
#include <cleave/comm/measure_link_body.hpp>
#endif
