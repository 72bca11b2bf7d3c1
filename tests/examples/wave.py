#!/usr/bin/env python3
"""examples/wave computes the pressures of a loop in Python, with the same bits and the same picture
on every mesh, threads or processes, and refuses bad options.

usage: wave.py PROGRAM [MPIEXEC]
"""

import math
import sys

from grid_programs import check_on_meshes, check_options, check_values
from cases import Cases

ROWS, COLUMNS, STEPS = 53, 24, 60
WEIGHTS = (8 / 5, -1 / 5, 8 / 315, -1 / 560)


def by_loops():
    """The pressures, by naive loops."""
    u = [[0.0] * COLUMNS for _ in range(ROWS)]
    before = [[0.0] * COLUMNS for _ in range(ROWS)]

    def at(i, j):
        return u[i][j % COLUMNS] if 0 <= i < ROWS else 0.0

    for step in range(STEPS):
        t = (step - 40) / 12
        source = (1 - 2 * t * t) * math.exp(-t * t)
        after = []
        for i in range(ROWS):
            speed = 0.08 if 2 * i < ROWS else 0.24
            depth = max(0.0, 1 - min(i, ROWS - 1 - i) / 20)
            damp = 0.2 * depth * depth
            after.append([])
            for j in range(COLUMNS):
                laplace = -2 * 205 / 72 * u[i][j]
                for k, weight in enumerate(WEIGHTS, 1):
                    laplace += weight * (at(i - k, j) + at(i + k, j) + at(i, j - k) + at(i, j + k))
                value = (2 * u[i][j] - (1 - damp) * before[i][j] + speed * laplace) / (1 + damp)
                is_source = i == ROWS // 3 and j == COLUMNS // 2
                after[i].append(value + source if is_source else value)
        u, before = after, u
    return u


def main(program, mpiexec=None):
    cases = Cases()
    one, four, pixels = check_on_meshes(cases, program, mpiexec, ROWS, COLUMNS, STEPS)
    expected = by_loops()
    cases.check("the wave has reached the row that is compared",
                max(map(abs, expected[ROWS // 2])) > 0.01, one)
    check_values(cases, one, expected, 1e-13)
    cases.check("four rows from one neighbour, four columns twice from the other",
                f"receives 2 messages, {8 * (4 * 12 + 8 * 27)} bytes" in four, four)
    cases.check("the picture has red and blue", any(
        pixels[k] > pixels[k + 2] + 20 for k in range(0, len(pixels), 3)) and any(
        pixels[k] + 20 < pixels[k + 2] for k in range(0, len(pixels), 3)), one)
    check_options(cases, program)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
