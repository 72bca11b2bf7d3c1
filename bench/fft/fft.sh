# shellcheck shell=sh
# Sourced by bench/run.sh: Fourier transforms on one core, and on 2 and 4 processes.
need libfftw3-mpi-dev
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/fft >&2
for processes in 1 2 4; do mpi_launch $processes build-bench/bench/fft; done
