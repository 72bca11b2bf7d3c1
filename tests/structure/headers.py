#!/usr/bin/env python3
"""Every public header compiles alone, twice included and without warnings, with every compiler.

usage: headers.py SOURCE_ROOT BUILD_ROOT COMPILER [CUDA_ROOT]

Headers that depend on a feature are compiled with the features of the build and without. Headers
for users and those of the compiled mode are also compiled with CLEAVE_COMPILED=1. Headers of the
CUDA side need CUDA_ROOT; those that contain kernels, and headers that include them, need nvcc.

g++ shows that a header needs nothing else; for headers with kernels, device_code/ declares what
nvcc provides. It reads a chain of headers in one file, each of which includes the one before: so what
precedes a header is only what it includes itself. If a chain does not compile, each of its headers
is compiled alone. nvcc, which reads a file twice, as device code and as host code, and clang++ read TOGETHER
headers in one file. With CLEAVE_TEST_LARGE=1 each is in a file of its own. For headers for users, the host code that
nvcc generates is compiled, too; and nvcc reads gpu_program.hpp, which calls what they declare.

For g++, much of what a header includes is precompiled: one of BASES, if the header includes it,
directly or not, independently of the features and before any code of its own. Precompilation adds
nothing to what the header would read, and the base is itself compiled alone. With
CLEAVE_TEST_LARGE=1 nothing is precompiled.
"""

import collections
import concurrent.futures
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from consumer_flags import consumer_flags
from precompiled import compiler_command

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]


# Headers that many others include; if several apply, the last one is used.
BASES = ["cleave/tensor/view.hpp", "cleave/tensor/cuda/stream.hpp", "cleave/comm/communicator.hpp",
         "cleave/redistribute/run_plan.hpp", "cleave/dtensor/dtensor.hpp",
         "cleave/ops/engine/call_op.hpp", "cleave/ops/elementwise/arithmetic.hpp"]
# Headers that programs in compiled mode include, and headers for the compiled mode only.
USERS = ["cleave/cleave.hpp", "cleave/cuda.hpp"]
OF_A_PROGRAM = ["cleave/cuda.hpp", "cleave/spmd.hpp", "cleave/grad.hpp", "cleave/nn.hpp",
                "cleave/parallel.hpp"]
GPU_PROGRAM = "gpu_program.hpp"  # in this folder
COMPILED_ONLY = ["cleave/compiled.hpp", "cleave/compiled_cuda.hpp"]
# Headers that need headers of other projects; their tests compile them where these are found.
BRIDGES = {f"cleave/interop/{name}.hpp" for name in ("eigen", "hypre", "kokkos", "multi_array", "petsc", "sundials")}
COMPILED = "-DCLEAVE_COMPILED=1"
TOGETHER = 128
DEVICE_CODE = "tests/structure/device_code"
LARGE = os.environ.get("CLEAVE_TEST_LARGE") == "1"


def is_nvcc(compiler):
    return pathlib.Path(compiler).name == "nvcc"


def is_of_cuda(header):
    return "/cuda/" in header or re.match(r"cleave/(cuda\.|comm/(device|nccl)\b)", header) is not None


# nvcc reads the file as device and as host code, without generating code for either.
BOTH_SIDES = ["-cuda", "-fdevice-syntax-only"]


def command(compiler, source, flags):
    if is_nvcc(compiler):
        return [compiler, "-std=c++20", "-x", "cu", "--expt-relaxed-constexpr",
                "-arch=sm_90", "-Werror", "all-warnings", "-o", os.devnull, *flags, source]
    return [*compiler_command(compiler), "-fsyntax-only", *WARNINGS, *flags, source]


def compile_alone(compiler, headers, flags):
    """The compiler's output for a file with only these includes, twice; empty if it succeeds."""
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "alone.cpp"
        source.write_text("".join(f"#include <{header}>\n" for header in [*headers, *headers]))
        done = subprocess.run(command(compiler, str(source), flags), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0:
        return ""
    return done.stdout.strip()[:4000] or f"exit status {done.returncode}"


@functools.cache
def includes(path):
    """The headers of cleave that a header includes directly."""
    return re.findall(r"^#include <(cleave/[^>]+)>", path.read_text(), re.MULTILINE)


@functools.cache
def includes_first(path):
    """The headers of cleave that a header includes unconditionally, before any other code."""
    depth, named = 0, []
    for line in path.read_text().splitlines():
        if line.startswith("namespace"):
            break
        depth += bool(re.match(r"#\s*if", line)) - bool(re.match(r"#\s*endif", line))
        if depth == 0:
            named += re.findall(r"^#include <(cleave/[^>]+)>", line)
    return named


def closure(root, header, seen=None, targets=includes):
    """The header and all headers of cleave that it includes."""
    seen = set() if seen is None else seen
    path = root / "include" / header
    if header not in seen and path.exists():
        seen.add(header)
        for target in targets(path):
            closure(root, target, seen, targets)
    return seen


def chains(root, headers):
    """The headers in lists, as few as possible, each of a header and others that include it, directly
    or not, one another in turn: a minimum path cover, by a maximum matching (L. R. Ford and D. R.
    Fulkerson, Flows in Networks, 1962)."""
    reached = {header: closure(root, header, targets=includes_first) for header in headers}
    below = {header: [other for other in headers if other != header and other in reached[header]]
             for header in headers}
    successor = {}

    def match(header, seen):
        for other in below[header]:
            if other not in seen:
                seen.add(other)
                if other not in successor or match(successor[other], seen):
                    successor[other] = header
                    return True
        return False

    for header in headers:
        match(header, set())
    last = set(successor.values())
    for first in (header for header in headers if header not in last):
        chain = [first]
        while chain[-1] in successor:
            chain.append(successor[chain[-1]])
        yield chain


def variants(root, compiler, features, cuda):
    """(header, whether alone, name of the variant, flags) for everything to compile."""
    plain = [f"-I{root}/include"]
    has_nccl = cuda and (pathlib.Path(cuda) / "include" / "nccl.h").exists()
    paths = sorted((root / "include").rglob("*.hpp"))
    of_mpi = {path for path in paths if re.search(r"comm/mpi|/mpi/", path.as_posix())}  # not for nvcc
    alone = LARGE or pathlib.Path(compiler).name.startswith("g++")
    for path in paths:
        header = path.relative_to(root / "include").as_posix()
        if header in BRIDGES:
            continue
        reached = closure(root, header)
        if header in USERS + COMPILED_ONLY:
            of_cuda = "cuda" in header
            if is_nvcc(compiler):
                # nvcc compiles the library's device code in compiled mode
                if header in USERS:
                    yield header, True, "compiled mode", [*plain, COMPILED, *BOTH_SIDES]
            elif not of_cuda:
                yield header, True, "compiled mode", [*plain, COMPILED]
                yield header, True, "compiled mode, all features", [*features, COMPILED]
            if header in COMPILED_ONLY:
                continue
        if re.match(r"cleave/comm/nccl\b", header) and not has_nccl:
            continue
        needs_mpi = path in of_mpi
        needs_cuda = any(map(is_of_cuda, reached))
        needs_nvcc = any(other == "cleave/kernels/cuda/launch_kernel.hpp" for other in reached)
        if is_nvcc(compiler):
            if not needs_mpi:
                yield header, alone or header in USERS, "both sides", [*plain, *BOTH_SIDES]
            if header == "cleave/cuda.hpp" and has_nccl:
                yield header, True, "with NCCL", [*plain, *BOTH_SIDES, "-DCLEAVE_HAS_NCCL=1"]
            continue
        if needs_cuda:
            runtime = [*plain, f"-isystem{cuda}/include"]
            if cuda and not needs_nvcc:
                yield header, alone, "CUDA runtime", runtime
            elif cuda and alone:
                yield header, True, "device code", [f"-I{root}/{DEVICE_CODE}", *runtime]
            continue
        if not needs_mpi:
            yield header, alone, "threads only", plain
        named = "CLEAVE_HAS_" in path.read_text() or header == "cleave/cleave.hpp"
        if named or needs_mpi and "-DCLEAVE_HAS_MPI=1" in features:
            yield header, alone, "all features", features


def files(jobs, root, compiler):
    """(headers, name of the variant, flags) for every file to compile."""
    shared, separate = collections.defaultdict(list), collections.defaultdict(list)
    for header, alone, variant, flags in jobs:
        if not alone:
            shared[variant, *flags].append(header)
        elif LARGE or is_nvcc(compiler):
            yield [header], variant, flags
        else:
            separate[base_of(root, header), variant, *flags].append(header)
    for (_, variant, *flags), headers in separate.items():
        for chain in chains(root, headers):
            yield chain, variant, flags
    if is_nvcc(compiler):
        yield OF_A_PROGRAM, "as a program", [f"-I{root}/include", COMPILED, "-c"]
        yield [GPU_PROGRAM], "header-only", [f"-I{root}/include", f"-I{root}/tests/structure",
                                             "--extended-lambda", *BOTH_SIDES]
    for (variant, *flags), headers in shared.items():
        for first in range(0, len(headers), TOGETHER):
            yield headers[first:first + TOGETHER], variant, flags


def base_of(root, header):
    """The last base that a header includes unconditionally, or None."""
    reached = closure(root, header, targets=includes_first) - {header}
    return next((base for base in reversed(BASES) if base in reached), None)


class Precompiled:
    """The bases that several of the jobs share, precompiled for g++."""

    def __init__(self, root, compiler, jobs, folder, pool):
        self.root, self.compiler, self.folder = root, compiler, folder
        users = collections.Counter((base_of(root, headers[0]), *flags) for headers, _, flags in jobs)
        self.made = {}
        if not LARGE and pathlib.Path(compiler).name.startswith("g++"):
            often = [key for key, count in users.items() if key[0] and count > 2]
            self.made = dict(zip(often, pool.map(self.make, often, range(len(often)))))

    def make(self, key, number):
        base, *flags = key
        header = pathlib.Path(self.folder) / f"base{number}.hpp"
        header.write_text(f"#include <{base}>\n")
        done = subprocess.run([*compiler_command(self.compiler), "-x", "c++-header", *WARNINGS, *flags,
                               str(header), "-o", str(header) + ".gch"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return header if done.returncode == 0 else None  # the base's own case reports the error

    def flags(self, base, flags):
        """The flags for a header that includes the base."""
        made = self.made.get((base, *flags))
        return [*flags, "-Winvalid-pch", "-include", str(made)] if made else flags


def main(root, build, compiler, cuda=None):
    cases = Cases()
    jobs = list(files(variants(root, compiler, consumer_flags(root, build), cuda), root, compiler))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, \
            tempfile.TemporaryDirectory() as folder:
        precompiled = Precompiled(root, compiler, jobs, folder, pool)
        separately = pathlib.Path(compiler).name.startswith("g++")

        def compiled(headers, flags):
            return compile_alone(compiler, headers,
                                 precompiled.flags(base_of(root, headers[0]), flags))

        def outputs(job):
            """The compiler's output for every case of the job."""
            headers, _, flags = job
            together = compiled(headers, flags)
            if not separately:
                return [together]
            if not together or len(headers) == 1:
                return [together] * len(headers)
            alone = [compiled([header], flags) for header in headers]
            return alone if any(alone) else [together] * len(headers)

        for (headers, variant, _), said in zip(jobs, pool.map(outputs, jobs)):
            names = [f"{header} compiles alone" for header in headers]
            if len(said) < len(headers):
                names = [f"{len(headers)} headers from {headers[0]} on compile"]
            for name, output in zip(names, said):
                cases.check(f"{name} ({variant})", not output, output)

        planted = pathlib.Path(folder) / "planted.hpp"
        for base, text in ((None, "inline std::string leans_on_others();\n"),
                           (BASES[0], "inline cleave::Communicator* leans_on_others();\n")):
            planted.write_text("#pragma once\n" + (f"#include <{base}>\n" if base else "") + text)
            flags = precompiled.flags(base, [f"-I{root}/include"]) + [f"-I{folder}"]
            output = compile_alone(compiler, ["planted.hpp"],
                                   [*flags, *BOTH_SIDES] if is_nvcc(compiler) else flags)
            cases.check(f"a planted header that includes {base or 'nothing'} and leans on others "
                        "does not compile", "leans_on_others" in output, output)

    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), *sys.argv[2:]))
