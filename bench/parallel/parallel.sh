# shellcheck shell=sh
# Sourced by bench/run.sh: parallel training on threads, many tensors at once between processes.
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/parallel_data bench/parallel_redistribute_all >&2
build-bench/bench/parallel_data
mpi_launch 4 build-bench/bench/parallel_redistribute_all
