#!/usr/bin/env python3
"""The sources are formatted as clang-format 19 does it with .clang-format.

usage: format.py SOURCE_ROOT CLANG_FORMAT

Generated reference values (tests/*/*torch*.hpp) are left out.
"""

import fnmatch
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

FOLDERS = ["include", "tests", "examples", "bench"]
KINDS = {".hpp", ".cpp", ".cu"}
GENERATED = ["tests/nn/torch_*.hpp", "tests/ops/*_torch.hpp"]


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in KINDS and not any(fnmatch.fnmatch(name, g) for g in GENERATED):
                yield path


def violations(root, clang_format, files):
    """The lines of clang-format's report that name a place."""
    done = subprocess.run([clang_format, f"--style=file:{root}/.clang-format", "--dry-run",
                           *map(str, files)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    lines = [line for line in done.stdout.splitlines() if "-Wclang-format-violations" in line]
    return lines or ([done.stdout] if done.returncode != 0 else [])


def main(root, clang_format):
    cases = Cases()
    root = pathlib.Path(root)
    files = list(sources(root))
    found = violations(root, clang_format, files)
    cases.check(f"{len(files)} files are formatted", not found, "\n".join(found[:50]))
    with tempfile.TemporaryDirectory() as folder:
        planted = pathlib.Path(folder) / "planted.hpp"
        planted.write_text("int  x ;\n")
        cases.check("a line that is not formatted is found",
                    bool(violations(root, clang_format, [planted])))
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
