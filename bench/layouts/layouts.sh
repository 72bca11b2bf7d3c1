# shellcheck shell=sh
# Sourced by bench/run.sh: block-cyclic matrices to slabs and back, on 2 and on 4 processes.
need libscalapack-openmpi-dev
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/layouts >&2
mpi_launch 2 build-bench/bench/layouts
mpi_launch 4 build-bench/bench/layouts
