#!/usr/bin/env python3
"""examples/spmd_expand runs its four programs with the bits of calls, on threads and processes; the
losses are those of one rank, and the programs communicate as their placements say.

usage: spmd_expand.py PROGRAM [MPIEXEC]
"""

import pathlib
import re
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from programs import check_refusals, run

LINE = re.compile(r"^(\w+) on .*, losses (.*)\n  (\d+) all_reduce in (\d+)  "
                  r"(\d+) reduce_scatter in (\d+)  (\d+) all_gather in (\d+)", re.MULTILINE)
NAMES = ["data_parallel", "tensor_parallel", "both", "fully_sharded"]
# Collectives and the rounds that they are merged into: of 16 parameters and the loss; two for each
# part of the block, which wait for each other; of 16 parts of parameters.
DATA, TENSOR, SHARDED = [17, 1, 0, 0, 0, 0], [4, 4, 0, 0, 0, 0], [1, 1, 16, 1, 16, 1]
COUNTS = {1: [[0] * 6] * 4,
          2: [DATA, TENSOR, TENSOR, SHARDED],
          3: [DATA, TENSOR, DATA, SHARDED],
          4: [DATA, TENSOR, [21, 5, 0, 0, 0, 0], SHARDED]}


def programs_of(done):
    """Name, losses and counts of the programs that ran with the bits of calls."""
    return [(name, [float(loss) for loss in losses.split()], [int(n) for n in counts])
            for name, losses, *counts in LINE.findall(done.stdout)]


def main(program, mpiexec=None):
    cases = Cases()
    runs = [(f"{n} threads", n, run(program, "--ranks", n)) for n in (1, 2, 3, 4)]
    if mpiexec:
        runs += [(f"{n} processes", n, run(mpiexec, "-n", n, program)) for n in (2, 4)]
    else:
        cases.skip("spmd_expand under mpirun", "there is no mpirun")
    expected = programs_of(runs[0][2])[0][1]
    for name, ranks, done in runs:
        programs = programs_of(done)
        cases.check(f"{name}: four programs with the bits of calls",
                    done.returncode == 0 and [each[0] for each in programs] == NAMES, done.stdout)
        cases.check(f"{name}: the losses of one rank",
                    all(abs(a - b) < 1e-5 for each in programs for a, b in zip(each[1], expected)),
                    done.stdout)
        cases.check(f"{name}: communication as placements say",
                    [each[2] for each in programs] == COUNTS[ranks], done.stdout)
    scratch = pathlib.Path(tempfile.mkdtemp()) / "texts"
    run(program, "--ranks", 2, "--to", scratch)
    for name, line in [("data_parallel.graph", "= linear("),
                       ("tensor_parallel.program", "all_reduce(sum) over tp of"),
                       ("fully_sharded.program", "reduce_scatter(sum) over dp of")]:
        text = (scratch / f"{name}.txt").read_text()
        cases.check(f"{name} is written", line in text and "return %" in text, text)
    for picture in sorted(scratch.glob("*.svg")):
        root = xml.etree.ElementTree.parse(picture).getroot()
        cases.check(f"{picture.name} is a picture", root.tag.endswith("svg"), root.tag)
    cases.check("all graphs and programs are drawn", len(list(scratch.glob("*.svg"))) == 8)
    check_refusals(cases, program, [(["--mesh", "dp=2"], "unknown option '--mesh'")])
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
