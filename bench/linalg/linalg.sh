# shellcheck shell=sh
# Sourced by bench/run.sh: products of matrices on a grid of 2 and of 4 processes against ScaLAPACK's
# pdgemm, what they receive on up to 4096 ranks against the lower bound, how much of a latency
# panels hide, and factorisations against ScaLAPACK's.
need libscalapack-openmpi-dev
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/linalg bench/linalg_panels bench/linalg_factors >&2
export OPENBLAS_NUM_THREADS=1
mpi_launch 2 build-bench/bench/linalg
mpi_launch 4 build-bench/bench/linalg
build-bench/bench/linalg_panels
mpi_launch 2 build-bench/bench/linalg_factors
mpi_launch 4 build-bench/bench/linalg_factors
