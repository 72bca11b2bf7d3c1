#!/usr/bin/env python3
"""Doxygen reads the public headers without a warning.

usage: reference.py SOURCE_ROOT DOXYGEN
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

PLANTED = """/// A function. @param y  that it does not have
inline int planted(int x) { return x; }
"""


def warnings(root, doxygen, changes):
    """The output of Doxygen for docs/Doxyfile followed by these settings."""
    settings = (pathlib.Path(root) / "docs" / "Doxyfile").read_text() + "".join(
        f"\n{name} = {value}" for name, value in changes.items())
    done = subprocess.run([doxygen, "-"], cwd=root, input=settings, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.strip() or ("" if done.returncode == 0 else f"exit {done.returncode}")


def main(root, doxygen):
    cases = Cases()
    with tempfile.TemporaryDirectory() as folder:
        output = {"OUTPUT_DIRECTORY": folder, "GENERATE_HTML": "NO", "GENERATE_XML": "YES"}
        said = warnings(root, doxygen, output)
        cases.check("doxygen has no warnings", not said, said[:8000])
        written = (pathlib.Path(folder) / "xml" / "namespacecleave.xml")
        cases.check("the reference has the functions of the library",
                    written.exists() and "<name>redistribute_all</name>" in written.read_text())
        planted = pathlib.Path(folder) / "planted.hpp"
        planted.write_text(PLANTED)
        said = warnings(root, doxygen, output | {"INPUT": planted})
        cases.check("a parameter that a function does not have is found",
                    "'y' of command @param is not found" in said, said)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
