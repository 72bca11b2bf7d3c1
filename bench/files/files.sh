# shellcheck shell=sh
# Sourced by bench/run.sh: files of one array, on 1, 2 and 4 processes, in a folder of DIRECTORY (the
# first option; by default build-bench), against pwrite and pread of the same bytes.
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/files >&2
scratch=$(mktemp -d -p "${1:-build-bench}")
trap 'rm -rf "$scratch"' EXIT
for ranks in 1 2 4; do mpi_launch "$ranks" build-bench/bench/files "$scratch"; done
