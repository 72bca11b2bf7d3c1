#!/usr/bin/env python3
"""examples/heat computes the temperatures of a loop in Python, with the same bits and the same
picture on every mesh, threads or processes, and refuses bad options.

usage: heat.py PROGRAM [MPIEXEC]
"""

import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from programs import check_refusals, run

ROWS, COLUMNS, STEPS = 13, 24, 60
SIZE = ["--rows", ROWS, "--columns", COLUMNS, "--steps", STEPS]
VALUE = re.compile(r"^u\((\d+), (\d+)\) = (\S+)$", re.MULTILINE)


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
    expected = by_loops()
    with tempfile.TemporaryDirectory() as folder:
        def simulate(*command):
            picture = pathlib.Path(folder) / f"{len(list(pathlib.Path(folder).iterdir()))}.ppm"
            done = run(*command, *SIZE, "--picture", picture)
            return done, VALUE.findall(done.stdout), picture.read_bytes() if picture.exists() else b""

        one, values, picture = simulate(program, "--ranks", 1)
        cases.check("the temperatures of a loop", len(values) == 8 and all(
            abs(float(value) - expected[int(i)][int(j)]) <= 1e-14 for i, j, value in values), one.stdout)
        header = f"P6\n{COLUMNS} {ROWS}\n255\n".encode()
        cases.check("the picture has a pixel per element", picture.startswith(header)
                    and len(picture) == len(header) + 3 * ROWS * COLUMNS, one.stdout)
        cases.check("the hot end is red, the cold one blue", len(picture) > len(header)
                    and picture[len(header)] > picture[len(header) + 2]
                    and picture[-3] < picture[-1], one.stdout)
        for ranks, mesh in ((4, "2x2"), (3, "1x3"), (5, "5x1"), (6, "3x2")):
            done, found, drawn = simulate(program, "--ranks", ranks, "--mesh", mesh)
            cases.check(f"{mesh} threads: the same bits and picture", found == values
                        and drawn == picture, done.stdout)
        if mpiexec:
            done, found, drawn = simulate(mpiexec, "-n", 4, program, "--mesh", "2x2")
            cases.check("2x2 processes: the same bits and picture", found == values
                        and drawn == picture, done.stdout)
            cases.check("a row from each neighbour around, a column from one", found and
                        "receives 2 messages, 248 bytes" in done.stdout, done.stdout)
    check_refusals(cases, program, [
        (["--mesh", "2"], "heat: --mesh is '2'; it must be two integers, as in 2x2"),
        (["--mesh", "2x3", "--ranks", 4], "heat: --mesh 2x3 does not match the number of ranks, 4"),
        (["--steps", "0"], "heat: --steps is '0'; it must be an integer of at least 1"),
        (["--color", "1"], "heat: unknown option '--color'; the options are --rows"),
    ])
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
