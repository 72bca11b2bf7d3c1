#!/bin/sh
# Runs the tests: installs missing packages (Debian), configures, builds, tests on threads and under
# mpirun. The last line is `N passed, N failed`, with `, N skipped` if any; the exit status is 0 if
# all is well.
#
# usage: sh tests/run.sh [BUILD_DIR [SUITE [MESON_OPTION..]]]
#        sh tests/run.sh --device [BUILD_DIR [MESON_OPTION..]]
# BUILD_DIR defaults to build-tests. Without SUITE everything runs except the suite `ci`, which
# takes long and is for .ci/run. Only what the tests need is built; `ci` builds everything.
# `build-SUITE` builds what SUITE needs and runs nothing. The sources of a program are compiled as
# one file (Meson's option unity), or as a few if there are enough cores, and are optimised only if
# running takes longer than compiling: reading the headers takes longer than compiling the cases.
#
# --device is for a machine with nvcc and a GPU: it runs the suite `cuda`, optimised like programs,
# and installs nothing; BUILD_DIR defaults to build-device.
set -u
cd "$(dirname "$0")/.." || exit 1
. .ci/debian.sh

optimization=0
if [ "${1:-}" = --device ]; then
  shift
  build=${1:-build-device}
  suite=cuda
  optimization=2
  build_packages=
  if [ $# -gt 1 ]; then shift; else shift $#; fi
  set -- -Dcuda=enabled -Dtests=enabled -Dexamples=disabled "$@"
else
  build=${1:-build-tests}
  suite=${2:-}
  if [ $# -gt 2 ]; then shift 2; else shift $#; fi
fi
only_build=
case $suite in build-*) suite=${suite#build-} only_build=yes ;; esac
jobs=$(getconf _NPROCESSORS_ONLN)  # Ninja's default is two more, which costs 8 % on two cores
files=8                            # compiled as one
[ "$jobs" -gt 2 ] || files=32
name=testlog${suite:+-$suite}
log=$build/meson-logs/$name.json
if [ -n "$suite" ]; then chosen="--suite=$suite"; else chosen="--no-suite=ci"; fi
case $suite in ci) to_build=all ;; *) to_build=$suite ;; esac
rm -f "$log"

# shellcheck disable=SC2086  # a list of words
need $build_packages &&
  configure "$build" -Dunity=on -Dunity_size=$files -Doptimization=$optimization "$@" &&
  python3 tests/support/build.py "$build" "$jobs" $to_build &&
  { [ -z "$only_build" ] || exit 0; } &&
  meson test -C "$build" --no-rebuild --print-errorlogs --logbase "$name" "$chosen"

if command -v python3 >/dev/null 2>&1; then exec python3 tests/support/tally.py "$log"; fi
echo "0 passed, 1 failed"
exit 1
