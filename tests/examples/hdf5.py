#!/usr/bin/env python3
"""examples/hdf5 reads what it has written, on one, two and four processes, and so does h5py.

usage: hdf5.py [PROGRAM MPIEXEC]
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

READ = """import h5py, sys
with h5py.File(sys.argv[1]) as file:
    x = file["fluid/density"]
    assert x.shape == (50, 70) and (x[:].ravel() == range(3500)).all(), x[:]
    assert x.attrs["unit"] == "kg/m3" and file.attrs["time"] == 0.25, dict(x.attrs)
"""


def run(*command):
    return subprocess.run(command, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def python_with_h5py():
    for python in (sys.executable, "/usr/bin/python3"):
        if pathlib.Path(python).exists() and run(python, "-c", "import h5py").returncode == 0:
            return python
    return None


def main(program=None, mpiexec=None):
    cases = Cases()
    if program is None:
        cases.skip("examples/hdf5", "HDF5 was not found (Debian: libhdf5-openmpi-dev)")
        return cases.finish()
    python = python_with_h5py()
    if python is None:
        cases.skip("h5py reads the example's file", "Python has no h5py (Debian: python3-h5py)")
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/field.h5"
        for ranks in (1, 2, 4):
            done = run(mpiexec, "-n", str(ranks), program, path)
            cases.check(f"{ranks} processes read what they have written", done.returncode == 0
                        and "in kg/m3\nlargest difference: 0\n" in done.stdout, done.stdout)
            if python is not None:
                done = run(python, "-c", READ, path)
                cases.check(f"h5py reads the file of {ranks} processes", done.returncode == 0,
                            done.stdout)
        done = run(program, path, "--ranks", "2")
        cases.check("ranks that are threads are refused", done.returncode == 1
                    and "by 'thread', not by MPI" in done.stdout, done.stdout)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
