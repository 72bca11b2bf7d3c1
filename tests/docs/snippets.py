#!/usr/bin/env python3
"""The C++ of README.md and docs/*.md compiles, and what is a program runs.

usage: snippets.py SOURCE_ROOT COMPILER

A block ```cpp that has a main is a program: compiled, linked, and run on 4 ranks next to the digits.
Any other ```cpp block is compiled as the body of a rank's function, on a 2 x 2 mesh of dp and tp;
if it opens with an #include or a `template`, it stands at file scope instead. Blocks that are not
C++ to compile are marked otherwise (```text, ```sh).
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)

FILE_SCOPE = """#include <cleave/cleave.hpp>
using namespace cleave;
"""

RANK_SCOPE = FILE_SCOPE + """using axes::dp;
using axes::tp;
int snippet(int argc, char** argv) {
  return run(argc, argv, [](World& world) {
    [[maybe_unused]] auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
%s
  });
}
"""


def is_program(block):
    return "int main(" in block


def source_of(block):
    if is_program(block) or block.lstrip().startswith("#include"):
        return block
    if block.lstrip().startswith("template"):
        return FILE_SCOPE + block
    return RANK_SCOPE % block


def snippets(root):
    """(where it stands, its text) of every C++ block."""
    for page in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        text = page.read_text()
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            yield f"{page.relative_to(root)}:{line}", match.group(1)


def try_out(root, compiler, block):
    """What went wrong with a block; empty if nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "snippet.cpp"
        program = pathlib.Path(scratch) / "snippet"
        source.write_text(source_of(block))
        command = [compiler, "-std=c++20", f"-I{root}/include", str(source)]
        command += ["-pthread", "-o", str(program)] if is_program(block) else ["-fsyntax-only"]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode == 0 and is_program(block):
            done = subprocess.run([str(program), "--ranks", "4"], text=True, timeout=120,
                                  cwd=root / "examples/kmeans", stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return "" if done.returncode == 0 else done.stdout[-4000:] or f"status {done.returncode}"


def main(root, compiler):
    cases = Cases()
    found = list(snippets(root))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = pool.map(lambda snippet: try_out(root, compiler, snippet[1]), found)
        for (where, block), output in zip(found, wrong):
            cases.check(f"{where} " + ("compiles and runs" if is_program(block) else "compiles"),
                        not output, output)
    cases.check("the README shows a program",
                any(where.startswith("README") and is_program(block) for where, block in found))
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
