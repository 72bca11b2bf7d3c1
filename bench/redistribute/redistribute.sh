# shellcheck shell=sh
# Sourced by bench/run.sh: the planner, collectives between threads and between two processes, each
# against its bare counterpart.
need libscalapack-openmpi-dev
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/redistribute_plans bench/redistribute_threads bench/redistribute_mpi >&2
build-bench/bench/redistribute_plans
build-bench/bench/redistribute_threads
mpi_launch 2 build-bench/bench/redistribute_mpi
