#!/usr/bin/env python3
"""examples/kmeans on GPUs: the reference's numbers on the stand-in, and on a real GPU if there is
one; otherwise one clear error.

usage: kmeans_cuda.py DATA_FOLDER STAND_IN_PROGRAM [PROGRAM]

nvcc compiles both; `-` stands for one that was not built.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kmeans import Cases, check_numbers, run

NONE = "a CUDA device is required, but none is available"


def check_stand_in(cases, program, data):
    if program == "-":
        return cases.skip("the numbers of the reference on a stand-in", "CUDA's headers are missing")
    for dp, tp in ((1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (7, 1)):
        for path in ("direct", "staged"):
            done = run([program, "--data", data, "--mesh", f"{dp}x{tp}", "--ranks", dp * tp,
                        "--device", "cuda"], CLEAVE_CUDA_COMM=path)
            check_numbers(cases, f"{dp}x{tp}, stand-in, {path}", done, dp, tp)
    done = run([program, "--data", data, "--device=cuda", "--ranks", 2], CLEAVE_STAND_IN_DEVICES="0")
    lines = done.stderr.splitlines()
    cases.check("a machine without a GPU is told so in one line",
                done.returncode == 1 and len(lines) == 1 and NONE in lines[0],
                f"{done.returncode}: {done.stderr}")


def check_device(cases, program, data):
    if program == "-":
        return cases.skip("the program that nvcc compiles", "nvcc is missing")
    done = run([program, "--data", data, "--ranks", 4, "--mesh", "2x2"])
    check_numbers(cases, "compiled by nvcc, on the host", done, 2, 2)
    done = run([program, "--data", data, "--device", "abacus"])
    cases.check("an unknown device is refused in one line, exit code 2",
                done.returncode == 2 and done.stderr ==
                "run: this program is not compiled for the device 'abacus'; it knows: host, cuda\n",
                f"{done.returncode}: {done.stderr}")
    done = run([program, "--data", data, "--device", "cuda", "--ranks", 4, "--mesh", "2x2"])
    if done.returncode == 1 and NONE in done.stderr:
        lines = done.stderr.splitlines()
        cases.check("asking for a GPU where there is none is one clear error", len(lines) == 1,
                    done.stderr)
        cases.skip("the numbers of the reference on a GPU", "needs a GPU")
    else:
        check_numbers(cases, "on a GPU", done, 2, 2)


def main(data_folder, stand_in, program="-"):
    cases = Cases()
    data = pathlib.Path(data_folder) / "digits.npy"
    check_stand_in(cases, stand_in, data)
    check_device(cases, program, data)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
