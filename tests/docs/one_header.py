#!/usr/bin/env python3
"""docs/amalgamate.py writes a header with which alone the README's first program compiles, and runs
on threads.

usage: one_header.py SOURCE_ROOT COMPILER
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from programs import run
from snippets import snippets_of


def main(root, compiler):
    cases = Cases()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "cleave").mkdir()
        with open(folder / "cleave/cleave.hpp", "w") as header:
            subprocess.run([sys.executable, root / "docs/amalgamate.py"], stdout=header, check=True)
        program = snippets_of(root, root / "README.md")[0]
        (folder / "program.cpp").write_text(program.block)
        done = run(compiler, "-std=c++20", "-O0", "-pthread", "-I", folder, folder / "program.cpp",
                   "-o", folder / "program")
        cases.check("the README's first program compiles with this header only",
                    done.returncode == 0, done.stdout[:5000])
        if done.returncode == 0:
            shutil.copy(root / "examples/kmeans/digits.npy", folder)
            said = subprocess.run([folder / "program", "--ranks", "4"], cwd=folder, text=True,
                                  stdout=subprocess.PIPE, check=False).stdout
            cases.check("it prints what the README says", said == program.prints, said)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]))
