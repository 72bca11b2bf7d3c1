#!/usr/bin/env python3
"""The programs of examples/compare beside their counterparts.

usage: ratios.py [NAME PROGRAM COUNTERPART]..

Prints, each above 1 where cleave's program is shorter or faster,

    compare.NAME.lines_ratio   lines of the counterpart / of the program, without empty lines and
                               those that are only a comment
    compare.NAME.vs_mpi        the counterpart's time / the program's, on two processes: medians
                               of runs in turn

Ends with an error if they print different results.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "examples/compare"
sys.path.insert(0, str(ROOT / "tests/examples"))
from compare import agree
EXTENTS = {"cg": 1000, "heat": 2000, "histogram": 60_000_000, "kmeans": 200_000, "matmul": 2000,
           "poisson": 192, "transpose": 3000}
RUNS = 7
MPIRUN = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
          "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
          "OPENBLAS_NUM_THREADS": "1"}


def lines_of(program):
    text = (SOURCES / f"{pathlib.Path(program).name}.cpp").read_text()
    return sum(not re.fullmatch(r" *(//.*)?", line) for line in text.splitlines())


def run_of(program, extent):
    """The seconds that a program measures, and its results."""
    done = subprocess.run(["mpirun", "-n", "2", program, str(extent)], text=True, check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=os.environ | MPIRUN)
    return float(re.search(r"^seconds (\S+)$", done.stderr, re.MULTILINE)[1]), done.stdout


def main(*pairs):
    for name, program, counterpart in zip(pairs[0::3], pairs[1::3], pairs[2::3]):
        print(f"compare.{name}.lines_ratio {lines_of(counterpart) / lines_of(program):.2f} ratio")
        times = []
        for _ in range(RUNS):
            (ours, results), (theirs, others) = (run_of(each, EXTENTS[name])
                                                 for each in (program, counterpart))
            if not agree(results, others):
                sys.exit(f"{program} prints\n{results}and {counterpart}\n{others}")
            times.append((ours, theirs))
        ours, theirs = (statistics.median(column) for column in zip(*times))
        print(f"compare.{name}.vs_mpi {theirs / ours:.3f} ratio", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
