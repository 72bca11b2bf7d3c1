#!/usr/bin/env python3
"""The starter examples print what they promise, on threads and on processes.

usage: starters.py HELLO_MESH REDISTRIBUTE OWN_OPERATION [MPIEXEC]
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases


def run(*command):
    return subprocess.run([str(word) for word in command], text=True, timeout=120,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)


def chunk(extent, parts, part):
    size = -(-extent // parts)
    return f"{min(part * size, extent)}:{min((part + 1) * size, extent)}"


def check_hello(cases, name, done, ranks):
    nodes = 2 if ranks % 2 == 0 else 1
    racks = ranks // nodes
    lines = [f"rank {r} of {ranks} is at [{r // nodes}, {r % nodes}] of rack={racks} x node={nodes}: "
             f"table[{chunk(5, racks, r // nodes)}, {chunk(6, nodes, r % nodes)}]"
             for r in range(ranks)]
    cases.check(f"hello_mesh, {name}: every rank names its place and its part",
                sorted(done.stdout.splitlines()) == sorted(lines), done.stdout + done.stderr)


def check_redistribute(cases, name, done):
    rows = [f"{number:2d}." for number in range(80)]
    matrix = "[[" + "],\n [".join(", ".join(rows[10 * i:10 * i + 10]) for i in range(8)) + "]]"
    cases.check(f"redistribute, {name}: the array survives", matrix in done.stdout,
                done.stdout + done.stderr)


def check_own_operation(cases, name, done):
    cases.check(f"own_operation, {name}: results and gradients are those of one rank",
                "from one rank's results: below 1e-9" in done.stdout, done.stdout + done.stderr)
    cases.check(f"own_operation, {name}: it is traced",
                "traced: weighted_gram[7, 7] square[7, 7] sum[]" in done.stdout, done.stdout)


def main():
    hello, redistribute, own_operation = sys.argv[1:4]
    mpiexec = sys.argv[4] if len(sys.argv) > 4 else ""
    cases = Cases()
    for ranks in (1, 2, 3, 4, 6):
        check_hello(cases, f"{ranks} threads", run(hello, "--ranks", ranks), ranks)
        if ranks % 2 == 0:
            check_redistribute(cases, f"{ranks} threads", run(redistribute, "--ranks", ranks))
            check_own_operation(cases, f"{ranks} threads", run(own_operation, "--ranks", ranks))
    done = run(redistribute, "--ranks", 3)
    cases.check("redistribute: three ranks are refused on stderr",
                done.returncode == 1 and "start an even number of ranks" in done.stderr, done.stderr)
    if mpiexec:
        check_hello(cases, "4 processes", run(mpiexec, "-n", 4, hello), 4)
        check_redistribute(cases, "4 processes", run(mpiexec, "-n", 4, redistribute))
        check_own_operation(cases, "4 processes", run(mpiexec, "-n", 4, own_operation))
    else:
        cases.skip("the starters under mpirun", "there is no mpirun")
    sys.exit(cases.finish())


if __name__ == "__main__":
    main()
