#!/usr/bin/env python3
"""docs/amalgamate.py writes a header with which alone a program compiles, and runs on threads.

usage: one_header.py SOURCE_ROOT COMPILER
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent / "support")
from cases import Cases
from programs import run


def main(root, compiler):
    cases = Cases()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "cleave").mkdir()
        with open(folder / "cleave/cleave.hpp", "w") as header:
            subprocess.run([sys.executable, root / "docs/amalgamate.py"], stdout=header, check=True)
        done = run(compiler, "-std=c++20", "-O0", "-pthread", "-I", folder,
                   root / "tests/consumer/project/main.cpp", "-o", folder / "program")
        cases.check("a program compiles with this header only", done.returncode == 0,
                    done.stdout[:5000])
        if done.returncode == 0:
            said = run(folder / "program", "--ranks", 4).stdout
            cases.check("four threads sum 0 .. 4, 10 .. 14 and 20 .. 24",
                        said == "total 180 on 4 ranks\n", said)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]))
