# shellcheck shell=sh
# Sourced by bench/run.sh: Fourier transforms on one core, and on 2 and 4 processes; steps of
# examples/turbulence, in a box and in a plane, beside the same by hand with FFTW-MPI.
need libfftw3-mpi-dev
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/fft bench/turbulence-bench bench/turbulence-by-hand >&2
for processes in 1 2 4; do mpi_launch $processes build-bench/bench/fft; done

# Elements per second of the last of three lines of progress.
speed() { awk '/^step/ { for (i = 2; i <= NF; ++i) if ($i == "elements/s") at = $(i - 1) } END { print at }'; }
for processes in 1 2 4; do
  for extents in 64x64 1x512; do
    options="--layers ${extents%x*} --size ${extents#*x} --steps 15 --every 5 --dt 0.001"
    # shellcheck disable=SC2086  # a list of words
    ours=$(mpi_launch $processes build-bench/bench/turbulence-bench $options --start taylor-green | speed)
    # shellcheck disable=SC2086
    theirs=$(mpi_launch $processes build-bench/bench/turbulence-by-hand $options | speed)
    echo "fft.turbulence.${processes}x1.${extents}.vs_by_hand $(echo "$ours $theirs" | awk '{ printf "%.3f", $1 / $2 }') ratio"
  done
done
# Lines that are not empty and not only a comment.
lines() { grep -cvE '^ *(//.*)?$' "$1"; }
echo "fft.turbulence.lines $(lines examples/turbulence/turbulence.cpp) lines"
echo "fft.turbulence.lines_by_hand $(lines bench/fft/turbulence_by_hand.cpp) lines"
