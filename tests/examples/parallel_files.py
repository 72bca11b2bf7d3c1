#!/usr/bin/env python3
"""examples/hdf5 and examples/netcdf read what they have written, on one, two and four processes,
and so does Python.

usage: parallel_files.py NAME [PROGRAM MPIEXEC]
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from interpreter import python_that_runs

READ = {"hdf5": """import h5py, sys
with h5py.File(sys.argv[1]) as file:
    x = file["fluid/density"]
    assert x.shape == (50, 70) and (x[:].ravel() == range(3500)).all(), x[:]
    assert x.attrs["unit"] == "kg/m3" and file.attrs["time"] == 0.25, dict(x.attrs)
""", "netcdf": """import netCDF4, sys
with netCDF4.Dataset(sys.argv[1]) as file:
    x, level = file["depth"], file["level"]
    assert x.dimensions == ("y", "x") and (x[:].ravel() == range(3500)).all(), x[:]
    assert level.shape == (3, 50, 70) and (level[1] == x[:]).all() and (level[2] == 2 * x[:]).all()
    assert x.units == "m" and file.time_step == 0.25, file
"""}
PACKAGE = {"hdf5": "libhdf5-openmpi-dev", "netcdf": "libnetcdf-mpi-dev"}
MODULE = {"hdf5": "h5py", "netcdf": "netCDF4"}
UNIT = {"hdf5": "kg/m3", "netcdf": "m"}


def run(*command):
    return subprocess.run(command, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def main(name, program=None, mpiexec=None):
    cases = Cases()
    if program is None:
        cases.skip(f"examples/{name}", f"its library was not found (Debian: {PACKAGE[name]})")
        return cases.finish()
    module = MODULE[name]
    python = python_that_runs(f"import {module}")
    if python is None:
        cases.skip(f"{module} reads the example's file",
                   f"Python has no {module} (Debian: python3-{module.lower()})")
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/field"
        for ranks in (1, 2, 4):
            done = run(mpiexec, "-n", str(ranks), program, path)
            cases.check(f"{ranks} processes read what they have written", done.returncode == 0
                        and f"in {UNIT[name]}\nlargest difference: 0\n" in done.stdout, done.stdout)
            if python is not None:
                done = run(python, "-c", READ[name], path)
                cases.check(f"{module} reads the file of {ranks} processes", done.returncode == 0,
                            done.stdout)
        done = run(program, path, "--ranks", "2")
        cases.check("ranks that are threads are refused", done.returncode == 1
                    and "by 'thread', not by MPI" in done.stdout, done.stdout)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
