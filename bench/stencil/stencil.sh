# shellcheck shell=sh
# Sourced by bench/run.sh: stencils on one core, and the exchange of ghosts between processes.
need petsc-dev
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/stencil_kernels bench/stencil_mpi >&2
build-bench/bench/stencil_kernels
for processes in 2 4; do mpi_launch $processes build-bench/bench/stencil_mpi; done
