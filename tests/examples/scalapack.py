#!/usr/bin/env python3
"""examples/scalapack multiplies as loops do, on one, two and four processes.

usage: scalapack.py [PROGRAM MPIEXEC]
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases


def main(program=None, mpiexec=None):
    cases = Cases()
    if program is None:
        cases.skip("examples/scalapack", "ScaLAPACK was not found (Debian: libscalapack-openmpi-dev)")
        return cases.finish()
    for ranks in (1, 2, 4):
        done = subprocess.run([mpiexec, "-n", str(ranks), program], text=True, timeout=120,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        cases.check(f"the product of {ranks} processes is that of loops", done.returncode == 0
                    and "from a loop's product: below 1e-12" in done.stdout, done.stdout)
    done = subprocess.run([program, "--ranks", "2"], text=True, timeout=120,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    cases.check("ranks that are threads are refused", done.returncode == 1
                and "by 'thread', not by MPI" in done.stdout, done.stdout)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
