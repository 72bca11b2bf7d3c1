#!/usr/bin/env python3
"""cleave.py on the ranks of an mpi4py program: results against NumPy, shared memory, errors.

usage: CLEAVE_LIBRARY=FILE PYTHONPATH=FOLDER mpirun -n N python_ranks.py
"""

import os
import pathlib
import sys

import numpy
from mpi4py import MPI

sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent.parent / "support")
from cases import Cases

import cleave

WORLD = MPI.COMM_WORLD
if WORLD.rank != 0:
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # rank 0 speaks for all


class OnAllRanks(Cases):
    """A case passes if it passes on every rank."""

    def check(self, name, passed, *message):
        super().check(name, WORLD.allreduce(bool(passed), MPI.LAND), *message)


def raises(call, text):
    try:
        call()
    except cleave.Error as error:
        return text in str(error)
    return False


def main():
    cases = OnAllRanks()
    rank, ranks = WORLD.rank, WORLD.size
    mesh = cleave.Mesh(WORLD, [ranks])
    grid = cleave.Mesh(WORLD, [2, ranks // 2] if ranks % 2 == 0 else [1, ranks])
    cases.check("a mesh knows this rank's position", mesh.coordinate == (rank,) and
                grid.coordinate == divmod(rank, grid.extents[1]))

    whole = numpy.arange(7 * 5, dtype="int16").reshape(7, 5)
    chunk = -(-7 // ranks)
    part = whole[rank * chunk:(rank + 1) * chunk].copy()
    x = mesh.from_local(part, whole.shape, "S0")
    cases.check("arrays describe themselves", (x.shape, x.dtype, x.placements) ==
                ((7, 5), numpy.dtype("int16"), "S0"))
    cases.check("a NumPy array is taken without a copy", part.size == 0 or
                x.local.ctypes.data == part.ctypes.data and
                numpy.shares_memory(x.local, part))
    columns = -(-5 // ranks)
    y, dealt = x.redistribute("S1"), x.redistribute("C0:2")
    own = [i for i in range(7) if i // 2 % ranks == rank]
    cases.check("rows become columns, and are dealt in blocks",
                numpy.array_equal(y.local, whole[:, rank * columns:(rank + 1) * columns]) and
                numpy.array_equal(dealt.local, whole[own]) and dealt.placements == "C0:2")
    cases.check("every rank gets all of it", numpy.array_equal(y.full(), whole))
    kept = x.redistribute("R").local  # outlives its array
    cases.check("a NumPy array keeps its elements", numpy.array_equal(kept, whole))
    x.local[...] = -1
    cases.check("elements are written in place", (part == -1).all() and (x.full() == -1).all())

    generator = numpy.random.default_rng(3)
    given = generator.random((6, 4, 5)) + 1j * generator.random((6, 4, 5))
    for on, placements in [(mesh, "S1"), (grid, "S0,S2")]:
        z = on.zeros(given.shape, "complex128", "R" if on is mesh else "R,R")
        z.local[...] = given
        modes = z.redistribute(placements).fft()
        cases.check(f"transforms under {placements}", modes.placements == placements and
                    numpy.allclose(modes.full(), numpy.fft.fftn(given), atol=1e-12) and
                    numpy.allclose(modes.ifft().full(), given, atol=1e-14))

    a, b = mesh.zeros((9, 9), float, "R"), mesh.zeros((9, 2), float, "R")
    a.local[...] = generator.random((9, 9)) + 9 * numpy.eye(9)
    b.local[...] = generator.random((9, 2))
    try:
        found = cleave.solve(a.redistribute("B1"), b.redistribute("S0"))
        cases.check("linear systems", found.placements == "S0" and
                    numpy.allclose(found.full(), numpy.linalg.solve(a.local, b.local), atol=1e-13))
    except cleave.Error as error:
        cases.check("linear systems name what is missing", "libscalapack" in str(error))

    cases.check("errors say what is wrong",
                raises(lambda: x.redistribute("S2"), "expected a dimension from 0 to 1") and
                raises(lambda: mesh.zeros([2], "float128", "R"), "unknown element type 'float128'") and
                raises(lambda: mesh.from_local(whole.T, whole.T.shape, "R"), "C-contiguous") and
                raises(lambda: mesh.from_local(whole[:0], whole.shape, "R"), "(0, 5)") and
                raises(lambda: cleave.Mesh(WORLD, [ranks + 1]), str(ranks + 1)) and
                raises(x.fft, "int16"))
    cases.check("the version", cleave.version() >= 100)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main())
