#!/usr/bin/env python3
"""What the compiler pays for cleave: its headers, and one more redistribution.

usage: compile_time.py [COMPILER]         (default g++; every number is the median of five runs)

compile.include_seconds    a file that includes <cleave/cleave.hpp>, thread backend, at -O0
compile.include_mb         the largest resident set of the compiler on that file
compile.redistribute_ms    each further redistribution between two-axis placements, at -O0

Times are processor time, user and system, which other load disturbs less than the clock.
"""

import itertools
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
RUNS = 5
FEW, MANY = 5, 205

HEADER = "#include <cleave/cleave.hpp>\n"
ALIASES = """using namespace cleave;
template <class... P>
using X = DTensor<float, 3, DeviceMesh<Host, axes::dp, axes::tp>, Placements<P...>>;
"""


def redistributions(count):
    """A file with that many, every one between other placements."""
    placements = ["Replicate", "Shard<0>", "Shard<1>", "Shard<2>"]
    layouts = list(itertools.product(placements, repeat=2))
    pairs = [(a, b) for a in layouts for b in layouts if a != b]
    step = 97  # coprime to the number of pairs: all sources and targets come early
    lines = []
    for i in range(count):
        source, target = pairs[i * step % len(pairs)]
        lines.append("auto f%d(const X<%s>& x) { return x.redistribute(%s); }"
                     % (i, ", ".join(source), ", ".join(p + "{}" for p in target)))
    return HEADER + ALIASES + "\n".join(lines) + "\n"


def compile(compiler, text):
    """(seconds, MB) of one run of the compiler."""
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "unit.cpp"
        source.write_text(text)
        command = [compiler, "-std=c++20", "-O0", f"-I{INCLUDE}", "-c", str(source),
                   "-o", os.devnull]
        process = subprocess.Popen(command)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(compiler="g++"):
    runs = [[compile(compiler, text) for text in (HEADER, redistributions(FEW),
                                                  redistributions(MANY))]
            for _ in range(RUNS)]
    seconds, megabytes = zip(*(run[0] for run in runs))
    marginal = [(many[0] - few[0]) / (MANY - FEW) for _, few, many in runs]
    print(f"compile.include_seconds {statistics.median(seconds):.3f} s")
    print(f"compile.include_mb {statistics.median(megabytes):.0f} MB")
    print(f"compile.redistribute_ms {1000 * statistics.median(marginal):.1f} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
