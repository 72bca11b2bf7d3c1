#!/usr/bin/env python3
"""docs/ops.md matches the list of operations.

usage: ops_page.py PAGE PROGRAM [--write]

PROGRAM prints the page; --write replaces PAGE with it.
"""

import collections
import difflib
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases


def repeated(page):
    """Functions that have several rows in the table; variants are listed below it."""
    rows = collections.Counter(re.findall(r"^\| `(\w+)[(<]", page, re.MULTILINE))
    return sorted(name for name, count in rows.items() if count > 1)


def main(page, program, write=False):
    printed = subprocess.run([program], text=True, stdout=subprocess.PIPE, check=True).stdout
    if write:
        page.write_text(printed)
    there = page.read_text() if page.exists() else ""
    changes = "\n".join(difflib.unified_diff(there.splitlines(), printed.splitlines(),
                                             "docs/ops.md", "the list", lineterm="", n=0))
    cases = Cases()
    cases.check("docs/ops.md is what the list of operations says", not changes,
                changes + "\n\nto write it again: meson compile -C build write-ops-page")
    cases.check("docs/ops.md has a row per operation", there.count("\n| `") > 150)
    cases.check("no operation has two rows", not repeated(there), ", ".join(repeated(there)))
    cases.check("a second row is found",
                repeated(there + "\n| `sum(x)` | `ab->` |") == ["sum"])
    cases.check("helpers of gradients have no row", "or_one" not in there)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2], "--write" in sys.argv[3:]))
