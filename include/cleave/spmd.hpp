// Programs as values: functions of tensors that are traced, placed on a mesh, counted, printed and
// run. Not part of cleave.hpp: programs without graphs do not pay for it.
#pragma once

#include <cleave/spmd/call_program.hpp>
#include <cleave/spmd/check_expands.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/draw_dot.hpp>
#include <cleave/spmd/draw_svg.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/extent.hpp>
#include <cleave/spmd/find_schemas.hpp>
#include <cleave/spmd/frozen.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/named_output.hpp>
#include <cleave/spmd/passes/coalesce.hpp>
#include <cleave/spmd/passes/fit_memory.hpp>
#include <cleave/spmd/passes/optimize.hpp>
#include <cleave/spmd/passes/share_moves.hpp>
#include <cleave/spmd/passes/shift_moves.hpp>
#include <cleave/spmd/passes/split_moves.hpp>
#include <cleave/spmd/passes/start_early.hpp>
#include <cleave/spmd/print_passes.hpp>
#include <cleave/spmd/print_program.hpp>
#include <cleave/spmd/print_schemas.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/run_program.hpp>
#include <cleave/spmd/then.hpp>
#include <cleave/spmd/trace_function.hpp>
#include <cleave/spmd/traced.hpp>
#include <cleave/spmd/traced_collectives.hpp>
#include <cleave/spmd/traced_factories.hpp>
#include <cleave/spmd/traced_stencil.hpp>
#include <cleave/spmd/with_extents.hpp>
