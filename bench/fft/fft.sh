# shellcheck shell=sh
# Sourced by bench/run.sh: Fourier transforms on one core, and on 2 and 4 processes, beside
# FFTW-MPI, SpFFT and dtFFT; steps of examples/turbulence, in a box and in a plane, beside the same
# by hand with FFTW-MPI.
need libfftw3-mpi-dev libspfft-dev python3-venv python3-mpi4py python3-numpy
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/fft bench/turbulence-bench bench/turbulence-by-hand >&2
for processes in 1 2 4; do mpi_launch $processes build-bench/bench/fft; done

# dtFFT is in PyPI, for the MPI of Debian and the mpi4py of Debian's Python.
python=build-bench/venv-dtfft/bin/python
if ! "$python" -c 'import dtfft' 2>/dev/null; then
  { /usr/bin/python3 -m venv --system-site-packages build-bench/venv-dtfft &&
    "$python" -m pip install --quiet dtfft-fftw-openmpi; } >&2 || :
fi
if "$python" -c 'import dtfft' 2>/dev/null; then
  for processes in 2 4; do
    for _ in 1 2 3; do
      mpi_launch $processes build-bench/bench/fft seconds | sed 's/^/ours /'
      mpi_launch $processes "$python" bench/fft/fft_by_dtfft.py | sed 's/^/theirs /'
    done | awk -v processes=$processes '
      $1 == "ours" { ours[$2, ++turns[$2]] = $3 }
      $1 == "theirs" { ratio[$2, turns[$2]] = $3 / ours[$2, turns[$2]] }
      function median(a, b, c) { return a <= b ? (b < c ? b : a < c ? c : a) : median(b, a, c) }
      END {
        for (cube in turns)
          if ((cube, 3) in ratio) printf "fft.%dx1.vs_dtfft.%s %.3f ratio\n", processes, cube,
            median(ratio[cube, 1], ratio[cube, 2], ratio[cube, 3])
      }'
  done
else
  echo "fft.*.vs_dtfft omitted: dtfft-fftw-openmpi cannot be installed from PyPI" >&2
fi

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
