#!/bin/sh
# From a fresh clone to distributed computations: installs missing packages (Debian), builds,
# clusters handwritten digits on four ranks, first as threads, then as processes under mpirun, and
# trains a network to read them.
#
# usage: sh examples/quickstart.sh
set -eu
cd "$(dirname "$0")/.."
. .ci/debian.sh

kmeans=build/examples/kmeans/kmeans
train=build/examples/train_digits/train_digits
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# shellcheck disable=SC2086  # a list of words
need $build_packages
echo "building $kmeans and $train"
if ! { configure build && ninja -C build "${kmeans#build/}" "${train#build/}"; } >"$log" 2>&1; then
  cat "$log"
  exit 1
fi

set -- --data examples/kmeans/digits.npy --mesh 2x2
echo "== four ranks as threads: $kmeans $* --ranks 4"
"$kmeans" "$@" --ranks 4
if command -v mpirun >/dev/null 2>&1; then
  echo "== four ranks as processes: mpirun -n 4 $kmeans $*"
  mpi_launch 4 "$kmeans" "$@"
else
  echo "== no mpirun here: ranks as processes need MPI and Boost.MPI"
fi

set -- --data examples/kmeans --mesh dp=2,tp=2
echo "== a network, four ranks as threads: $train $* --ranks 4"
"$train" "$@" --ranks 4
