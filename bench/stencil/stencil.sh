# shellcheck shell=sh
# Sourced by bench/run.sh: stencils on one core, the exchange of ghosts between processes, and
# between hosts that are network namespaces of this machine, half a millisecond from each other.
need petsc-dev iproute2 util-linux
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/stencil_kernels bench/stencil_mpi bench/stencil_hosts >&2
build-bench/bench/stencil_kernels
for processes in 2 4; do mpi_launch $processes build-bench/bench/stencil_mpi; done
python3 tests/cluster/cluster.py --hosts 2 --ranks 1 --delay 0.5 \
  env CLEAVE_TUNE=measure build-bench/bench/stencil_hosts 2x1_0.5ms
# Lines that are not empty and not only a comment. What the programs on grids share is in grid.hpp.
lines() { grep -cvE '^ *(//.*)?$' "$1"; }
echo "stencil.heat.lines $(lines examples/heat/heat.cpp) lines"
echo "stencil.heat.lines_shared $(lines examples/grid.hpp) lines"
echo "stencil.heat.lines_by_hand $(lines bench/stencil/heat_by_hand.cpp) lines"
