# shellcheck shell=sh
# Sourced by bench/run.sh: collectives of two processes on this machine, bound to a core each, and
# on hosts that are network namespaces of it, each against the MPI library's; and many tensors
# redistributed together against one after the other. The hosts without and with a delay of half a
# millisecond between them. Arguments: sizes in bytes.
# CONGESTION=reno sets TCP's congestion control on the hosts.
need iproute2 util-linux
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/nodes_collectives bench/parallel_redistribute_all >&2
# no processes share cores here: they need not yield, as mpi_launch would have them do
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  mpirun -n 2 build-bench/bench/nodes_collectives 1x2 "$@"
on_hosts() {
  python3 tests/cluster/cluster.py --hosts "${launch%x*}" --ranks "${launch#*x}" \
    --delay "$delay" ${CONGESTION:+--congestion "$CONGESTION"} "$@"
}
for delay in 0 0.5; do
  for launch in 2x1 4x1 2x2 4x2 2x4; do
    name=$launch
    [ "$delay" = 0 ] || name=${launch}_${delay}ms
    on_hosts build-bench/bench/nodes_collectives "$name" "$@"
    case $launch in 4x1 | 2x2) on_hosts build-bench/bench/parallel_redistribute_all "$name" ;; esac
  done
done
