#!/usr/bin/env python3
"""Device code computes complex numbers: nvcc silently drops the operators of std::complex.

usage: complex_code.py SOURCE_ROOT NVCC

Counts the instructions of each compiled kernel of complex_code.cu. Runs without a GPU.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from cases import Cases

# The minimum number of certain instructions that a function needs, by a substring of the mangled
# name of its kernel.
NEEDED = {
    "3AddE": ("add", 2), "3SubE": ("sub", 2), "3MulE": ("mul|fma", 4), "3DivE": ("div", 3),
    "6FoldedIN6cleave2v03SumE": ("add", 2), "6FoldedIN6cleave2v07ProductE": ("mul|fma", 4),
    "3NegE": ("sub|neg", 2), "6SquareE": ("mul|fma", 4), "3AbsE": ("sqrt|fma", 1),
    "3ExpE": ("mul|fma", 4), "3LogE": ("div|fma", 4), "4SqrtE": ("sqrt|div", 2),
    "4TanhE": ("div|fma", 4), "7SigmoidE": ("div", 2), "6Scaled": ("mul", 2),
    "7Average": ("div", 2), "4CastISt7complexIfE": ("cvt", 2), "4CastISt7complexIdE": ("cvt", 2),
}


def kernels(code):
    """The mangled names of all kernels, with their instructions."""
    parts = re.split(r"^(?:\.visible )?\.entry (\w+)\(", code, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2]))


def least(code, name, operations):
    """The smallest number of such instructions in any kernel with such a name."""
    return min((count(body, operations) for kernel, body in code if name in kernel), default=-1)


def count(body, operations):
    return len(re.findall(rf"^\s*(?:@\S+ )?(?:{operations})\.\S*f(?:32|64)", body, re.MULTILINE))


def main(root, nvcc):
    cases = Cases()
    source = pathlib.Path(__file__).with_suffix(".cu")
    with tempfile.TemporaryDirectory() as scratch:
        target = pathlib.Path(scratch) / "code.ptx"
        done = subprocess.run(
            [nvcc, "-std=c++20", "--expt-relaxed-constexpr", "-arch=sm_90", "-ptx", "-Werror",
             "all-warnings", f"-I{root}/include", "-o", str(target), str(source)],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        cases.check("functions of complex numbers are device code", done.returncode == 0,
                    done.stdout[:4000])
        code = kernels(target.read_text()) if done.returncode == 0 else []
    for name, (operations, needed) in NEEDED.items():
        found = least(code, name, operations)
        cases.check(f"{name}: both parts of complex numbers are computed", found >= needed,
                    f"{found} instructions of {operations}, not {needed}")
    cases.check("a planted copy in the place of a sum is found",
                least(code, "7Planted", "add") == 0)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
