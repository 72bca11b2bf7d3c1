#!/usr/bin/env python3
"""Newer compilers than those of the build read all headers for users without a warning, and a
program that they compile runs.

usage: compilers.py SOURCE_ROOT COMPILER..

Takes the compilers of the build, and tries all g++-N and clang++-N that are newer than those and
are in the PATH, clang++ also with a libc++ of its version.
"""

import os
import pathlib
import re
import sys
import tempfile

sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent / "support")
from cases import Cases
from programs import run

HEADERS = ["cleave/cleave.hpp", "cleave/parallel.hpp", "cleave/spmd.hpp"]
# libstdc++ 12 calls std::get_temporary_buffer, of whose deprecation clang++ warns from 17 on.
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-Wno-deprecated-declarations"]


def version_of(compiler):
    return int(run(compiler, "-dumpversion").stdout.split(".")[0])


def newer_compilers(known):
    """Commands, by version."""
    found = {}
    least = {"g++": 12, "clang++": 14}
    for compiler in known:
        name = pathlib.Path(compiler).name
        if name in least:
            least[name] = version_of(compiler)
    for folder in os.get_exec_path():
        for path in pathlib.Path(folder).glob("*++-*"):
            match = re.fullmatch(r"(g\+\+|clang\+\+)-(\d+)", path.name)
            if match and int(match[2]) > least[match[1]]:
                found[match[1], int(match[2])] = [path.name]
    for (name, version), command in sorted(found.items()):
        yield command
        if name == "clang++" and pathlib.Path(f"/usr/lib/llvm-{version}/include/c++/v1").exists():
            yield [*command, "-stdlib=libc++"]


def main(root, known):
    cases = Cases()
    for compiler in newer_compilers(known):
        name = " ".join(compiler)
        command = [*compiler, "-std=c++20", "-O0", "-pthread", "-I", root / "include"]
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "headers.cpp"
            source.write_text("".join(f"#include <{header}>\n" for header in HEADERS))
            read = run(*command, *WARNINGS, "-fsyntax-only", source)
            cases.check(f"{name} reads all headers without a warning", read.returncode == 0,
                        read.stdout[:5000])
            program = pathlib.Path(folder) / "program"
            made = run(*command, root / "tests/consumer/project/main.cpp", "-o", program)
            said = run(program, "--ranks", 4).stdout if made.returncode == 0 else made.stdout[:5000]
            cases.check(f"four threads of a program by {name} sum 0 .. 4, 10 .. 14 and 20 .. 24",
                        said == "total 180 on 4 ranks\n", said)
    if cases.passed + cases.failed == 0:
        cases.skip("other compilers", "none is newer than those of the build (Debian: clang-N)")
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]))
