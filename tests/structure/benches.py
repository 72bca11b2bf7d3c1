#!/usr/bin/env python3
"""Every benchmark compiles and links.

usage: benches.py BUILD_ROOT TARGET..
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases


def build(root, *arguments):
    """Builds the targets. Returns Ninja's output if the build fails."""
    done = subprocess.run(["ninja", "-C", root, *arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return "" if done.returncode == 0 else done.stdout[-8000:] or f"exit {done.returncode}"


def main(root, *targets):
    cases = Cases()
    build(root, "-k", "0", *targets)  # builds in parallel first
    for target in targets:
        said = build(root, target)
        cases.check(f"{target} is built", not said, said)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
