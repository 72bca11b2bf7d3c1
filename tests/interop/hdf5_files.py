#!/usr/bin/env python3
"""Files of h5py are read by two ranks, and their files by h5py; a rank that throws ends the others.

usage: hdf5_files.py [TEST_INTEROP MPIEXEC]
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from interpreter import require

require("h5py", "numpy")

import h5py
import numpy

TYPES = ["<f4", "<f8", ">f8", "<f2", ">f4", "i1", "u1", "<i2", ">u2", "<i4", "<u4", ">i8", "<u8",
         "<c8", "<c16", ">c16", "?"]


def elements(dtype, shape=(5, 4)):
    """As element_at in known_arrays.hpp."""
    i, j = numpy.indices(shape)
    n = (3 * 31 + i) * 31 + j
    kind = numpy.dtype(dtype).kind
    values = n % 3 == 1 if kind == "b" else n % 113 - 1j * (n % 31) if kind == "c" else n % 113
    return values.astype(dtype)


def run(mpiexec, program, case, path):
    return subprocess.run([mpiexec, "-n", "2", program, "--no-skip", f"-tc={case}"], text=True,
                          env={**os.environ, "CLEAVE_TEST_FILE": str(path)}, timeout=120,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def main(program=None, mpiexec=None):
    cases = Cases()
    if program is None:
        cases.skip("HDF5 files", "HDF5 was not found (Debian: libhdf5-openmpi-dev)")
        return cases.finish()
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "x.h5"
        how = [{}, {"chunks": (2, 4), "compression": "gzip", "shuffle": True}, {"chunks": (1, 1)}]
        with h5py.File(path, "w") as file:
            for n, dtype in enumerate(TYPES):
                file.create_dataset(f"of/{n}", data=elements(dtype), **how[n % 3])
            file.attrs["fixed"] = numpy.bytes_("fixed text")
            file.attrs["text"] = "τext"
            file.attrs["number"] = 2.5
            file.attrs["numbers"] = numpy.array([1, -2, 3], ">i8")
            file.attrs["table"] = numpy.zeros(1, [("a", "f4"), ("b", "f4")])
        done = run(mpiexec, program, "reads an HDF5 file of h5py*", path)
        if not cases.check("a file of h5py has the same elements for ranks", done.returncode == 0,
                           done.stdout):
            return cases.finish()
        with h5py.File(f"{path}.again") as file:
            for n, dtype in enumerate(TYPES):
                found = file[f"of/{n}"]
                wanted = numpy.dtype(dtype).newbyteorder("<")
                cases.check(f"{dtype} of ranks is that of h5py",
                            found.dtype == wanted and (found[:] == elements(dtype)).all()
                            and found.chunks == (2, 3) and found.compression == "gzip",
                            f"{found} {found[:]}")
            found = file["bf/bfloat16"]
            cases.check("h5py reads bfloat16 as float32",
                        found.dtype == "<f4" and (found[:] == elements("<f4")).all(), f"{found}")
            attributes = dict(file.attrs)
            cases.check("h5py reads the attributes of ranks",
                        attributes["text"] == "τext" and attributes["number"] == 2.5
                        and attributes["number"].dtype == "<f8"
                        and (attributes["numbers"] == [1, -2, 3]).all(), str(attributes))

        path = pathlib.Path(scratch) / "thrown.h5"
        begin = time.monotonic()
        done = run(mpiexec, program, "throws on one rank*", path)
        cases.check("a rank that throws ends the others at once, and there is no file",
                    done.returncode != 0 and "rank 1 has had enough" in done.stdout
                    and time.monotonic() - begin < 30 and not path.exists(), done.stdout)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
