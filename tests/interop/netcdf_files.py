#!/usr/bin/env python3
"""Files of Python's netCDF4 are read by three ranks, and their files by netCDF4 and by h5py.

usage: netcdf_files.py [TEST_INTEROP MPIEXEC]
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from interpreter import require

require("netCDF4", "h5py", "numpy")

import h5py
import netCDF4
import numpy

TYPES = ["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def elements(dtype):
    """As element_at in known_arrays.hpp."""
    i, j = numpy.indices((5, 4))
    return (((3 * 31 + i) * 31 + j) % 113).astype(dtype)


def write(path):
    with netCDF4.Dataset(path, "w") as file:
        for name, length in (("time", None), ("y", 5), ("x", 4)):
            file.createDimension(name, length)
        group = file.createGroup("of")
        for n, dtype in enumerate(TYPES):
            how = {"zlib": True, "chunksizes": (2, 4)} if n % 3 == 1 else {}
            group.createVariable(f"v{n}", dtype, ("y", "x"), **how)[:] = elements(dtype)
        records = file.createVariable("records", ">f4", ("time", "y", "x"), endian="big")
        for n in range(3):
            records[n] = elements("f4")
        file.text = "τext"
        file.setncattr_string("string", "of any length")
        file.numbers = numpy.array([1, -2, 3], "i8")
        group.number = 2.5


def main(program=None, mpiexec=None):
    cases = Cases()
    if program is None:
        cases.skip("NetCDF files", "NetCDF with MPI was not found (Debian: libnetcdf-mpi-dev)")
        return cases.finish()
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "x.nc"
        write(path)
        done = subprocess.run(
            [mpiexec, "-n", "3", program, "--no-skip", "-tc=reads a NetCDF file of Python*"],
            env={**os.environ, "CLEAVE_TEST_FILE": str(path)}, text=True, timeout=120,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        again = pathlib.Path(f"{path}.again")
        if not cases.check("a file of netCDF4 has the same elements for ranks",
                           done.returncode == 0 and again.exists(), done.stdout):
            return cases.finish()
        with netCDF4.Dataset(again) as file:
            for n, dtype in enumerate(TYPES):
                found = file[f"of/v{n}"]
                cases.check(f"netCDF4 reads {dtype} of ranks",
                            found.dtype == numpy.dtype(dtype) and found.dimensions == ("y", "x")
                            and (found[:] == elements(dtype)).all() and found.chunking() == [2, 3]
                            and found.filters()["complevel"] == 6, f"{found} {found[:]}")
            found = file["records"]
            cases.check("netCDF4 reads the records of ranks",
                        found.dimensions == ("time", "y", "x") and found.shape == (3, 5, 4)
                        and (found[:] == elements("f4")).all()
                        and file.dimensions["time"].isunlimited(), f"{found} {found[:]}")
            cases.check("netCDF4 reads the attributes of ranks",
                        file.text == "τext" and file["of"].number == 2.5
                        and (file.numbers == [1, -2, 3]).all(), str(file))
        with h5py.File(again) as file:
            found = file["of/v1"]
            cases.check("h5py reads a variable of ranks",
                        (found[:] == elements("f8")).all() and found.dims[0][0].name == "/y",
                        f"{found} {found[:]}")
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
