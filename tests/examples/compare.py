#!/usr/bin/env python3
"""The programs of examples/compare print what their counterparts print, on 1, 2 and 4 processes,
and on 3 threads. The extents are uneven on all but one rank.

usage: compare.py [MPIEXEC NAME PROGRAM COUNTERPART [NAME PROGRAM COUNTERPART]..]
"""

import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from programs import run

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]\d+)?")
# Sums are added in another order; a point of kmeans whose cluster differs would move a centroid
# by a thousandth.
TOLERANCE = 1e-7
EXTENTS = {"histogram": 10007, "kmeans": 1003, "poisson": 30}  # the programs' defaults; others: 101


def results(*command):
    """What a program prints on stdout and stderr, without the time that it took; nothing if it
    fails."""
    done = run(*command)
    if done.returncode != 0:
        print(done.stdout, flush=True)
        return ""
    return re.sub(r"^seconds .*\n", "", done.stdout, flags=re.MULTILINE)


def agree(one, other):
    """The same words, and numbers that differ by rounding."""
    numbers, others = NUMBER.findall(one), NUMBER.findall(other)
    return NUMBER.split(one) == NUMBER.split(other) and all(
        math.isclose(float(x), float(y), rel_tol=TOLERANCE) for x, y in zip(numbers, others))


def main(mpiexec=None, *pairs):
    cases = Cases()
    if mpiexec is None:
        cases.skip("programs beside those of other libraries", "MPI was not found")
        return cases.finish()
    for name, program, counterpart in zip(pairs[0::3], pairs[1::3], pairs[2::3]):
        for ranks in (1, 2, 4):
            ours = results(mpiexec, "-n", ranks, program)
            theirs = results(mpiexec, "-n", ranks, counterpart)
            cases.check(f"{name}: the same output of {ranks} processes",
                        len(NUMBER.findall(theirs)) > 0 and agree(ours, theirs),
                        f"{ours}\n{theirs}")
        on_threads = results(program, EXTENTS.get(name, 101), "--ranks", 3)
        cases.check(f"{name}: the same output of 3 threads", agree(on_threads, theirs),
                    f"{on_threads}\n{theirs}")
    for name, needed in (("poisson", "FFTW-MPI was not found (Debian: libfftw3-mpi-dev)"),
                         ("matmul", "ScaLAPACK was not found (Debian: libscalapack-openmpi-dev)")):
        if name not in pairs:
            cases.skip(f"{name} beside its counterpart", needed)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
