#!/usr/bin/env python3
"""examples/heat computes the temperatures of a loop in Python, with the same bits and the same
picture on every mesh, threads or processes, and refuses bad options. The same program written by
hand in plain MPI has the same output.

usage: heat.py PROGRAM [MPIEXEC BY_HAND]
"""

import pathlib
import sys
import tempfile

from grid_programs import VALUE, check_on_meshes, check_options, check_values
from cases import Cases
from programs import run

ROWS, COLUMNS, STEPS = 13, 24, 60


def by_loops():
    """The temperatures, by naive loops."""
    u = [[0.0] * COLUMNS for _ in range(ROWS)]

    def at(i, j):
        if j < 0:
            return 1.0 if i % ROWS < ROWS // 4 else 0.25
        return 0.0 if j >= COLUMNS else u[i % ROWS][j]

    for _ in range(STEPS):
        u = [[at(i, j) + 0.2 * (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1)
                                - 4 * at(i, j))
              for j in range(COLUMNS)] for i in range(ROWS)]
    return u


def check_by_hand(cases, program, mpiexec, by_hand):
    """More ranks than rows, and unequal parts, among the meshes."""
    for ranks, mesh in ((4, "2x2"), (3, "1x3"), (5, "5x1")):
        said, pictures = [], []
        for rows in (3, ROWS):
            for command in ([program, "--ranks", ranks], [mpiexec, "-n", ranks, by_hand]):
                with tempfile.TemporaryDirectory() as folder:
                    picture = pathlib.Path(folder) / "heat.ppm"
                    said.append(run(*command, "--rows", rows, "--columns", COLUMNS, "--steps",
                                    STEPS, "--mesh", mesh, "--picture", picture).stdout)
                    pictures.append(picture.read_bytes() if picture.exists() else b"")
        values = [VALUE.findall(text) for text in said]
        cases.check(f"by hand, {mesh}: the same values and picture",
                    len(values[0]) == 8 and values[0::2] == values[1::2]
                    and pictures[0::2] == pictures[1::2], "\n".join(said))


def main(program, mpiexec=None, by_hand=None):
    cases = Cases()
    one, four, pixels = check_on_meshes(cases, program, mpiexec, ROWS, COLUMNS, STEPS)
    check_values(cases, one, by_loops(), 1e-14)
    cases.check("the hot end is red, the cold one blue", len(pixels) > 0
                and pixels[0] > pixels[2] and pixels[-3] < pixels[-1], one)
    cases.check("a row from each neighbour around, a column from one",
                "receives 2 messages, 248 bytes" in four, four)
    if by_hand:
        check_by_hand(cases, program, mpiexec, by_hand)
    check_options(cases, program)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
