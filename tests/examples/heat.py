#!/usr/bin/env python3
"""examples/heat computes the temperatures of a loop in Python, with the same bits and the same
picture on every mesh, threads or processes, and refuses bad options.

usage: heat.py PROGRAM [MPIEXEC]
"""

import sys

from grid_programs import check_on_meshes, check_options, check_values
from cases import Cases

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


def main(program, mpiexec=None):
    cases = Cases()
    one, four, pixels = check_on_meshes(cases, program, mpiexec, ROWS, COLUMNS, STEPS)
    check_values(cases, one, by_loops(), 1e-14)
    cases.check("the hot end is red, the cold one blue", len(pixels) > 0
                and pixels[0] > pixels[2] and pixels[-3] < pixels[-1], one)
    cases.check("a row from each neighbour around, a column from one",
                "receives 2 messages, 248 bytes" in four, four)
    check_options(cases, program)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
