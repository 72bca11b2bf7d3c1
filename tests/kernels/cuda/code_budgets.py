#!/usr/bin/env python3
"""All kernels of the library keep to their registers, use no local memory, access 16 bytes at once
where that is promised, and do not compare and swap in loops.

usage: code_budgets.py PTXAS PROGRAM..

Takes the PTX out of programs that nvcc compiled, assembles it for several architectures, and reads
what ptxas reports. Of the second program and the ones after it, only kernels that the programs
before lack are assembled. Runs without a GPU.
"""

import concurrent.futures
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from cases import Cases

ARCHITECTURES = ("80", "90", "100")

# By a part of a kernel's mangled name: the most registers per thread, and which global accesses
# have 16 bytes in all of its instances. A multiprocessor with 65,536 registers holds one block of
# 256 threads with 255 registers each, two with 128.
BUDGETS = {
    "add_rows_kernel": (32, ""), "attention_rows_kernel": (64, ""), "chunk_totals_kernel": (64, ""),
    "chunk_totals_kernelILi4Ef": (40, "ld"), "check_draws_kernel": (24, ""),
    "combine_kernel": (96, ""), "draw_categories_kernel": (40, ""), "draw_times_kernel": (40, ""),
    "exact_results_kernel": (64, ""), "exact_sums_kernel": (64, ""),
    "finish_attention_kernel": (48, ""), "fused_rows_kernel": (224, "ld"),
    "map_indexed_kernel": (40, ""),
    "map_kernelILb1E": (64, "(?:ld|st)"), "map_kernelILb0E": (64, ""),
    "one_hot_kernel": (24, "st"), "order_keys_kernel": (24, ""),
    "reduce_across_kernel": (80, ""), "reduce_along_kernel": (80, ""), "row_keys_kernel": (24, "st"),
    "11rows_kernel": (48, "ld st"),
    "running_sums_kernel": (64, "st"), "shifted_rows_kernel": (64, ""), "store_addresses": (16, ""),
    "tile_kernel": (80, ""), "tiled_gemm_kernel": (168, ""), "update_kernel": (48, "ld st"),
    "visit_boxes_kernel": (72, ""), "weight_sums_kernel": (56, "ld"),
    "write_order_kernel": (24, ""),
    "11EmptyKernel": (8, ""), "DeviceRadixSort": (128, ""),  # CUB's
}


def texts(program):
    """The PTX in the fat binaries of a program: entries of kind 1, padded with zeros."""
    data, at, found = pathlib.Path(program).read_bytes(), -1, []
    while (at := data.find(struct.pack("<IHH", 0xBA55ED50, 1, 16), at + 1)) >= 0:
        entry = at + 16
        end = entry + struct.unpack_from("<Q", data, at + 8)[0]
        while entry < end:
            kind, _, header, size = struct.unpack_from("<HHIQ", data, entry)
            if kind == 1:
                found.append(data[entry + header:entry + header + size].rstrip(b"\0").decode())
            entry += header + size
    return found


def without(names, ptx):
    """The PTX without the kernels whose mangled names contain one of the names."""
    return re.sub(r"^\.visible \.entry (\w+)\(.*?^}\n\n", lambda kernel: "" if any(
        name in kernel[1] for name in names) else kernel[0], ptx, flags=re.MULTILINE | re.DOTALL)


def kernels(ptx):
    """The text of each kernel, by its mangled name."""
    parts = re.split(r"\.entry (\w+)\(", ptx)
    return {name: body.split("\n}", 1)[0] for name, body in zip(parts[1::2], parts[2::2])}


def assembled(ptx, ptxas, arch, *options):
    """(registers, bytes of local memory) of each kernel; the output of a compiler that failed."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        done = subprocess.run([ptxas, "-v", f"-arch=sm_{arch}", *options, "-o", os.devnull,
                               file.name], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    found = {}
    for part in done.stdout.split("Compiling entry function '")[1:]:
        local = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes", part)
        used = re.search(r"Used (\d+) registers", part)
        if local and used:
            found[part.split("'")[0]] = (int(used[1]), sum(map(int, local.groups())))
    return found, done.stdout[:4000] if done.returncode else ""


def wide(body, kind):
    """Whether the kernel loads or stores 16 bytes at once."""
    return any(int(count or 1) * int(bits) == 128 for count, bits in
               re.findall(rf"{kind}\.global(?:\.nc)?(?:\.v(\d))?\.\w(\d+)", body))


def narrow(code, name, kinds):
    """The kernels of that name which lack an access of 16 bytes."""
    return [kernel for kernel, body in code.items() if name in kernel
            for kind in kinds.split() if not wide(body, kind)]


def swapping(code):
    """The kernels that compare and swap: also by an addition of 64 bits in shared memory."""
    return [kernel for kernel, body in code.items()
            if re.search(r"(?:atom|red)\.\S*cas|(?:atom|red)\.shared\S*64", body)]


def main(ptxas, *programs):
    cases = Cases()
    parts, code = [], {}
    for program in programs:
        known = [name for name in BUDGETS if any(name in kernel for kernel in code)]
        for part in texts(program):
            part = without(known, part)
            if of_part := kernels(part):
                parts.append(part)
                code.update(of_part)
    unknown = [kernel for kernel in code if not any(name in kernel for name in BUDGETS)]
    cases.check("every kernel has a budget", code and not unknown, unknown)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = list(pool.map(lambda of: (of[0], assembled(of[1], ptxas, of[0])),
                                [(arch, part) for arch in ARCHITECTURES for part in parts]))
    for arch in ARCHITECTURES:
        found, failed = {}, []
        for _, (report, output) in (each for each in reports if each[0] == arch):
            found.update(report)
            failed += [output] if output else []
        cases.check(f"sm_{arch}: all kernels are assembled", not failed and set(found) == set(code),
                    failed or set(code) - set(found))
        for name, (most, _) in BUDGETS.items():
            over = [(kernel, *report) for kernel, report in found.items() if name in kernel and
                    (report[0] > most or report[1] > 0)]
            cases.check(f"sm_{arch}: {name} has at most {most} registers, and no local memory",
                        not over and any(name in kernel for kernel in found), over[:5])
    for name, (_, kinds) in BUDGETS.items():
        if kinds:
            missing = narrow(code, name, kinds)
            cases.check(f"{name} accesses 16 bytes at once ({kinds})", not missing, missing[:5])
    cases.check("no kernel compares and swaps", not swapping(code), swapping(code))

    update = next((part for part in parts if "update_kernel" in part), "")
    scalar = kernels(re.sub(r"st\.global\.v[24]", "st.global", update))
    cases.check("a planted scalar store is found", narrow(scalar, "update_kernel", "st"))
    for planted in "global.cas.b32 %r1, [%rd1], %r2, %r3", "shared.add.u64 %rd1, [%r1], %rd2":
        cases.check(f"a planted atom.{planted.split()[0]} is found",
                    swapping(kernels(update.replace("ret;", f"atom.{planted};\nret;"))))
    gemm = next((part for part in parts if "tiled_gemm_kernelIl" in part), "")
    one = re.search(r"\.visible \.entry \w*tiled_gemm_kernelIl.*?\n}", gemm, re.DOTALL)
    spilled, output = assembled(".version 9.0\n.target sm_80\n.address_size 64\n" +
                                (one[0] if one else ""), ptxas, "80", "-maxrregcount=32")
    cases.check("spills, which a limit of 32 registers causes, are found",
                any(local > 0 for _, local in spilled.values()), output)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
