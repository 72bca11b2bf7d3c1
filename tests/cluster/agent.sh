#!/bin/sh
# Called by mpirun instead of ssh: runs a command on a host of cluster.py.
#
# usage: agent.sh HOST COMMAND..     CLEAVE_CLUSTER: a folder with the process id of each host
set -eu
host=$1
shift
exec nsenter --target "$(cat "$CLEAVE_CLUSTER/$host")" --net --mount --uts --wd="$PWD" -- sh -c "$*"
