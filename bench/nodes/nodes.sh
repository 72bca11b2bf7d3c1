# shellcheck shell=sh
# Sourced by bench/run.sh: collectives on hosts that are network namespaces of this machine, each
# against the MPI library's own. Arguments: sizes in bytes.
need iproute2 util-linux
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/nodes_collectives >&2
for launch in 2x1 4x1 2x2 4x2 2x4; do
  hosts=${launch%x*}
  python3 tests/cluster/cluster.py --hosts "$hosts" --ranks "${launch#*x}" \
    build-bench/bench/nodes_collectives "$hosts" "$@"
done
