#!/usr/bin/env python3
"""A program that saves two arrays in turn under one name is killed at random moments: the file is
always one of them, whole.

usage: npy_killed.py TEST_INTEROP      (CLEAVE_KILLS=50: number of kills; default 10)
"""

import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

SEED = 17


def version_of(path):
    """Differs between a file and the one that replaces it."""
    if not path.exists():
        return None
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def main(program):
    cases = Cases()
    numbers = random.Random(SEED)
    kills = int(os.environ.get("CLEAVE_KILLS", "10"))
    elements = 300 * 1000
    wholes = [struct.pack("<d", value) * elements for value in (0.0, 1.0)]
    in_writing = 0
    seen = set()
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "x.npy"
        partial = pathlib.Path(f"{path}.partial")
        for _ in range(kills):
            running = subprocess.Popen([program, "--no-skip", "-tc=saves two arrays in turn*"],
                                       env={**os.environ, "CLEAVE_TEST_FILE": str(path)},
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            end = time.monotonic() + 60
            for _ in range(numbers.randint(1, 3)):
                before = version_of(path)
                while version_of(path) == before and time.monotonic() < end:
                    time.sleep(0.0005)
            time.sleep(numbers.uniform(0, 0.03))
            cases.check("the program saves until it is killed", running.poll() is None)
            running.kill()
            running.wait()
            in_writing += partial.exists()
            file = path.read_bytes()
            cases.check("the file is one of the arrays", file[:6] == b"\x93NUMPY" and
                        file[128:] in wholes, f"{len(file)} bytes")
            seen.add(file[-8:])
    print(f"{kills} kills, {in_writing} while a file was being written")
    cases.check("some kills are while a file is being written", in_writing > 0)
    cases.check("both arrays are seen", len(seen) == 2)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
