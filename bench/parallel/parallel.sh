# shellcheck shell=sh
# Sourced by bench/run.sh: parallel training on threads.
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/parallel_data >&2
build-bench/bench/parallel_data
