#!/usr/bin/env python3
"""examples/tensor_parallel learns to count, with the same losses on any number of ranks, threads or
processes, and its forward gathers and scatters as its plan says.

usage: tensor_parallel.py PROGRAM [MPIEXEC]
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from programs import run

LINE = re.compile(r"^step +(\d+)  loss (\d+\.\d+)", re.MULTILINE)
CALL = re.compile(r"^ +(\d+)  (\w+) +tp ", re.MULTILINE)


def losses_of(done):
    return [(int(step), float(loss)) for step, loss in LINE.findall(done.stdout)]


def alike(found, expected):
    return len(found) == len(expected) and all(
        a[0] == b[0] and abs(a[1] - b[1]) <= 0.002 for a, b in zip(found, expected))


def calls_of(done):
    """The number of calls of each collective in the forward pass."""
    forward = done.stdout.split("forward\n")[1].split("backward\n")[0]
    calls = {}
    for count, kind in CALL.findall(forward):
        calls[kind] = calls.get(kind, 0) + int(count)
    return calls


def main(program, mpiexec=None):
    cases = Cases()
    one = run(program, "--ranks", 1)
    expected = losses_of(one)
    cases.check("it learns to count",
                one.returncode == 0 and len(expected) == 5
                and expected[-1][1] < 0.2 * expected[0][1], one.stdout)
    runs = [(f"{n} threads", run(program, "--ranks", n)) for n in (2, 4)]
    if mpiexec:
        runs.append(("4 processes", run(mpiexec, "-n", 4, program)))
    else:
        cases.skip("tensor_parallel under mpirun", "there is no mpirun")
    for name, done in runs:
        cases.check(f"{name}: the losses of one rank",
                    done.returncode == 0 and alike(losses_of(done), expected), done.stdout)
        # two blocks of two parts, the tokens, the head; the loss
        cases.check(f"{name}: gathers before parts, scatters behind them",
                    calls_of(done) == {"reduce_scatter": 5, "all_gather": 5, "all_reduce": 2},
                    done.stdout)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
