#!/bin/sh
# Builds and runs one benchmark; prints lines `name value unit` and nothing else.
#
# usage: sh bench/run.sh NAME [OPTION..]     (a NAME is a folder or a .cpp of bench/)
set -eu
cd "$(dirname "$0")/.."
. .ci/debian.sh

name=${1:?usage: sh bench/run.sh NAME [OPTION..]}
shift
if [ -f "bench/$name/$name.py" ]; then
  need g++ python3
  exec python3 "bench/$name/$name.py" "$@"
fi

need g++ meson ninja-build pkg-config python3 libopenmpi-dev openmpi-bin libboost-mpi-dev \
  libboost-serialization-dev libopenblas-dev librandom123-dev
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench "bench/$name" >&2
exec "build-bench/bench/$name" "$@"
