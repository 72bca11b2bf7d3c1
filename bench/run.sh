#!/bin/sh
# Builds and runs one benchmark; prints lines `name value unit` and nothing else.
#
# usage: sh bench/run.sh NAME [OPTION..]     (NAME is a folder or a .cpp of bench/)
set -eu
cd "$(dirname "$0")/.."
. .ci/debian.sh

name=${1:?usage: sh bench/run.sh NAME [OPTION..]}
shift
if [ -f "bench/$name/$name.py" ]; then
  need g++ python3
  exec python3 "bench/$name/$name.py" "$@"
fi

[ "$name" != cuda ] || build_packages=  # a machine with a GPU need not have packages
# shellcheck disable=SC2086  # a list of words
need $build_packages
if [ -f "bench/$name/$name.sh" ]; then
  . "bench/$name/$name.sh"
  exit
fi
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench "bench/$name" >&2
exec "build-bench/bench/$name" "$@"
