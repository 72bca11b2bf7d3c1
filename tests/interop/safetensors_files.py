#!/usr/bin/env python3
"""A file of Python's safetensors is read by three ranks, and their file by safetensors.

usage: safetensors_files.py TEST_INTEROP
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from interpreter import require

require("numpy", "safetensors", packages="PyPI: safetensors, numpy")

import numpy
from safetensors.numpy import load_file, save_file


def main(program):
    cases = Cases()
    i, j = numpy.indices((5, 54000))  # as element_at in known_arrays.hpp
    x = (((3 * 31 + i) * 31 + j) % 113).astype("f4")
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/x.safetensors"
        save_file({"x": x}, path)
        done = subprocess.run(
            [program, "--no-skip", "-tc=reads a safetensors file of Python*"], text=True,
            env={**os.environ, "CLEAVE_TEST_FILE": path}, timeout=120, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if cases.check("a file of safetensors has the same elements for ranks",
                       done.returncode == 0, done.stdout):
            found = load_file(f"{path}.again")
            cases.check("safetensors reads the file of ranks",
                        list(found) == ["x"] and found["x"].dtype == x.dtype
                        and (found["x"] == x).all(), str(found))
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
