#!/usr/bin/env python3
"""examples/poisson solves the equation, in as many steps and with the same bits on every mesh,
threads or processes, and refuses bad options.

usage: poisson.py PROGRAM [MPIEXEC]
"""

import re
import sys

from grid_programs import VALUE, check_on_meshes, check_options, check_values, run
from cases import Cases

ROWS, COLUMNS = 53, 102
RESIDUAL = re.compile(r"^step (\d+): residual (\S+)$", re.MULTILINE)


def by_loops():
    """The potential, by successive over-relaxation."""
    left, right = COLUMNS // 4, COLUMNS - 1 - COLUMNS // 4
    f = [[0.0] * (COLUMNS + 2) for _ in range(ROWS + 2)]
    f[ROWS // 2 + 1][left + 1], f[ROWS // 2 + 1][right + 1] = 1.0, -1.0
    u = [[0.0] * (COLUMNS + 2) for _ in range(ROWS + 2)]
    for _ in range(600):
        for i in range(1, ROWS + 1):
            above, row, below, charge = u[i - 1], u[i], u[i + 1], f[i]
            for j in range(1, COLUMNS + 1):
                row[j] += 1.9 * (0.25 * (charge[j] + above[j] + below[j] + row[j - 1] + row[j + 1])
                                 - row[j])
    return [row[1:-1] for row in u[1:-1]]


def main(program, mpiexec=None):
    cases = Cases()
    both = re.compile(f"{VALUE.pattern}|{RESIDUAL.pattern}", re.MULTILINE)
    one, four, pixels = check_on_meshes(cases, program, mpiexec, ROWS, COLUMNS, 50, both)
    check_values(cases, one, by_loops(), 1e-8)
    residuals = [float(residual) for _, residual in RESIDUAL.findall(one)]
    cases.check("the residual falls to 1e-10 of the first", residuals and
                residuals[-1] <= 1e-10 * 2 ** 0.5 < residuals[-2], one)
    grids = re.findall(r"^(\d+) x (\d+) elements on (\d+) x (\d+) ranks$", four, re.MULTILINE)
    cases.check("grids of odd and even extents, small ones on fewer ranks",
                grids[:3] == [("53", "102", "2", "2"), ("26", "50", "1", "1"),
                              ("12", "24", "1", "1")], four)
    cases.check("the left is red, the right is blue", any(
        pixels[k] > pixels[k + 2] for k in range(0, len(pixels), 3)) and any(
        pixels[k] < pixels[k + 2] for k in range(0, len(pixels), 3)), one)
    for rows, columns, most in ((63, 127, 8), (255, 511, 9), (64, 128, 14)):
        done = run(program, "--ranks", 1, "--rows", rows, "--columns", columns)
        steps = len(RESIDUAL.findall(done.stdout))
        cases.check(f"{rows} x {columns} elements: at most {most} steps", 5 <= steps <= most,
                    done.stdout)
    check_options(cases, program)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
