#!/usr/bin/env python3
"""A program that saves two arrays in turn under one name is killed at random moments: the file is
always one of them, whole.

usage: files_killed.py FORMAT TEST_INTEROP [MPIEXEC]   (CLEAVE_KILLS=50: number of kills; default 10)

FORMAT is npy or safetensors, by ranks that are threads, or h5 or nc, by processes that MPIEXEC starts.
"""

import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

SEED = 17
WHOLES = [struct.pack("<d", value) * (300 * 1000) for value in (0.0, 1.0)]
CASE = {"npy": "saves two arrays in turn*",
        "safetensors": "saves two safetensors files in turn*",
        "h5": "saves two HDF5 files in turn*",
        "nc": "saves two NetCDF files in turn*"}


def npy_value(file):
    """The number of the array in a file; None if it is not whole."""
    return WHOLES.index(file[128:]) if file[:6] == b"\x93NUMPY" and file[128:] in WHOLES else None


def safetensors_value(file):
    """The same."""
    elements = file[8 + struct.unpack_from("<Q", file)[0]:] if len(file) >= 8 else b""
    return WHOLES.index(elements) if elements in WHOLES else None


def h5_value(file):
    """The same, also of NetCDF-4. A superblock of version 0 has the length of the file at byte 40,
    one of version 2 at byte 28."""
    at = {b"\0": 40, b"\2": 28}.get(file[8:9])
    if file[:8] != b"\x89HDF\r\n\x1a\n" or at is None or \
            struct.unpack_from("<Q", file, at)[0] != len(file):
        return None
    found = [number for number, whole in enumerate(WHOLES) if whole in file]
    return found[0] if len(found) == 1 else None


def version_of(path):
    """Differs between a file and the one that replaces it."""
    if not path.exists():
        return None
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def kill(running):
    """Kills a program, and first the processes that it has started."""
    children = pathlib.Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    for child in map(int, children):
        os.kill(child, signal.SIGKILL)
    if children:
        running.wait(60)  # for mpirun, which removes its temporary files
    running.kill()
    running.wait()


def main(ending, program, *mpiexec):
    cases = Cases()
    numbers = random.Random(SEED)
    kills = int(os.environ.get("CLEAVE_KILLS", "10"))
    value_in = {"npy": npy_value, "safetensors": safetensors_value, "h5": h5_value, "nc": h5_value}[ending]
    launch = [*mpiexec, "-n", "2"] if mpiexec else []
    in_writing = 0
    seen = set()
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / f"x.{ending}"
        partial = pathlib.Path(f"{path}.partial")
        for turn in range(5 * kills):
            if turn >= kills and seen == {0, 1} and in_writing > 0:
                break  # which array a kill leaves is chance: rarely the same one ten times
            running = subprocess.Popen([*launch, program, "--no-skip", f"-tc={CASE[ending]}"],
                                       env={**os.environ, "CLEAVE_TEST_FILE": str(path)},
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            end = time.monotonic() + 60
            for _ in range(numbers.randint(1, 3)):
                before = version_of(path)
                while version_of(path) == before and time.monotonic() < end:
                    time.sleep(0.0005)
            time.sleep(numbers.uniform(0, 0.03))
            cases.check("the program saves until it is killed", running.poll() is None)
            kill(running)
            in_writing += partial.exists()
            file = path.read_bytes()
            value = value_in(file)
            cases.check("the file is one of the arrays", value is not None, f"{len(file)} bytes")
            seen.add(value)
    print(f"{turn} kills, {in_writing} while a file was being written")
    cases.check("some kills are while a file is being written", in_writing > 0)
    cases.check("both arrays are seen", seen == {0, 1}, str(seen))
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
