#!/bin/sh
# Runs all tests: installs what is missing (Debian), configures, builds, tests on threads and under
# mpirun. The last line is `N passed, N failed`, with `, N skipped` if any; the exit status tells
# whether all is well.
#
# usage: sh tests/run.sh [BUILD_DIR [SUITE [MESON_OPTION..]]]
# BUILD_DIR defaults to build, SUITE to all suites; options count when BUILD_DIR is new.
set -eu
cd "$(dirname "$0")/.."
. .ci/debian.sh

build=${1:-build}
suite=${2:-}
[ $# -gt 2 ] && shift 2 || shift $#
log=$build/meson-logs/testlog.json

need g++ clang meson ninja-build pkg-config python3 doctest-dev \
  libopenmpi-dev openmpi-bin libboost-mpi-dev libboost-serialization-dev \
  libopenblas-dev librandom123-dev

rm -f "$log"
configure "$build" "$@" >&2 && ninja -C "$build" >&2 &&
  meson test -C "$build" --no-rebuild --print-errorlogs ${suite:+--suite "$suite"} >&2 || true
exec python3 tests/support/tally.py "$log"
