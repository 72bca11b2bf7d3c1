#!/usr/bin/env python3
"""examples/data_parallel learns, with the same losses on any number of ranks, threads or processes;
hooks that send less reach similar losses.

usage: data_parallel.py PROGRAM [MPIEXEC]
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from programs import check_refusals, run

LINE = re.compile(r"^step +(\d+)  loss (\d+\.\d+)  (\d+) buckets  received (\d+\.\d+) KiB",
                  re.MULTILINE)


def losses_of(done):
    return [float(loss) for _, loss, _, _ in LINE.findall(done.stdout)]


def received_by(done):
    """The KiB communicated in the last step that is printed."""
    return float(LINE.findall(done.stdout)[-1][3])


def alike(found, expected):
    return len(found) == len(expected) and all(abs(a - b) <= 0.00025 for a, b in zip(found, expected))


def main(program, mpiexec=None):
    cases = Cases()
    one = run(program, "--ranks", 1)
    expected = losses_of(one)
    cases.check("the loss falls", one.returncode == 0 and len(expected) == 5
                and expected[-1] < 0.05 * expected[0] and received_by(one) == 0, one.stdout)
    three = run(program, "--ranks", 3)
    cases.check("three threads: the losses of one rank", alike(losses_of(three), expected),
                three.stdout)
    several = [mpiexec, "-n", 2, program] if mpiexec else [program, "--ranks", 2]
    two = run(*several, "--parts", 2)
    cases.check("two ranks: the losses of one rank", alike(losses_of(two), expected), two.stdout)
    for hook in ("bf16", "power_sgd", "top_k"):
        done = run(*several, "--hook", hook)
        losses = losses_of(done)
        cases.check(f"{hook} sends less, and learns", len(losses) == 5
                    and losses[-1] < 1.5 * expected[-1] + 0.001
                    and received_by(done) < 0.6 * received_by(two), done.stdout)
    check_refusals(cases, program, [
        (["--hook", "no"], "--hook: unknown hook 'no'; it must be all_reduce"),
        (["--color", "1"], "unknown option '--color'"),
    ])
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
