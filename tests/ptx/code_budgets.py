#!/usr/bin/env python3
"""Compiled kernels keep to their registers, use no local memory, and access 16 bytes at once.

usage: code_budgets.py PTX PTXAS

Assembles the PTX for several architectures and reads what ptxas reports. Runs without a GPU.
"""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from cases import Cases

ARCHITECTURES = ("80", "90", "100")

# The most registers per thread, by a substring of the kernel's mangled name. The product of 64-bit
# integers uses 160: a multiprocessor with 65,536 registers holds one block of 256 such threads.
REGISTERS = {
    "tiled_gemm_kernel": 168, "scatter_complex": 24, "multiply": 32, "copy_packs": 16,
}


def assembled(ptx, ptxas, arch, *options):
    """(registers, bytes of local memory) of each kernel; the compiler's output."""
    done = subprocess.run([ptxas, "-v", f"-arch=sm_{arch}", *options, "-o", os.devnull, ptx],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found = {}
    for part in done.stdout.split("Compiling entry function '")[1:]:
        local = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes", part)
        used = re.search(r"Used (\d+) registers", part)
        if local and used:
            found[part.split("'")[0]] = (int(used[1]), sum(map(int, local.groups())))
    return (found if done.returncode == 0 else {}), done.stdout[:4000]


def of(found, name):
    """The report of the only kernel with such a name."""
    reports = [report for kernel, report in found.items() if name in kernel]
    return reports[0] if len(reports) == 1 else (None, None)


def accesses(ptx, name):
    """The loads and stores of global memory of a kernel: their bytes, sorted."""
    body = re.search(rf"\.entry {name}\((.*?)^\}}", ptx, re.MULTILINE | re.DOTALL)[1]
    found = re.findall(r"(?:ld|st)\.global(?:\.nc)?(?:\.v(\d))?\.\w(\d+)", body)
    return sorted(int(count or 1) * int(bits) // 8 for count, bits in found)


def main(path, ptxas):
    cases = Cases()
    for arch in ARCHITECTURES:
        found, output = assembled(path, ptxas, arch)
        for name, most in REGISTERS.items():
            registers, local = of(found, name)
            cases.check(f"sm_{arch}: {name} has at most {most} registers and no local memory",
                        registers is not None and registers <= most and local == 0,
                        f"{registers} registers, {local} bytes\n{output}")
    found, output = assembled(path, ptxas, "80", "-maxrregcount=32")
    cases.check("spills, which a limit of 32 registers causes, are found",
                (of(found, "tiled_gemm_kernel")[1] or 0) > 0, output)
    ptx = pathlib.Path(path).read_text()
    cases.check("packs are copied 16 bytes at a time", accesses(ptx, "copy_packs") == [16, 16],
                accesses(ptx, "copy_packs"))
    cases.check("copies element by element are found", accesses(ptx, "copy_elements") == [4] * 8,
                accesses(ptx, "copy_elements"))
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
