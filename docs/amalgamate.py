#!/usr/bin/env python3
"""Writes cleave as one header, for compilers on web pages: ranks are threads, without libraries.

usage: python3 docs/amalgamate.py [HEADER..] > cleave.hpp

Contains the headers of include/cleave that are named, by default cleave.hpp, as in
`amalgamate.py cleave.hpp grad.hpp`. Projects should include the headers themselves, which have the
features that need other libraries.
"""

import pathlib
import re
import sys

INCLUDE = pathlib.Path(__file__).resolve().parent.parent / "include"
OPENING = """// cleave in one header: distributed tensors for C++20, on ranks that are threads.
// Boost Software License 1.0, https://www.boost.org/LICENSE_1_0.txt
#pragma once
"""
DIRECTIVE = re.compile(r"^\s*#\s*(\w+)\s*(.*?)\s*$")
COMMENT = re.compile(r"\s*(//.*)?")
ALWAYS = "!CLEAVE_COMPILED"  # what the compiled mode would leave out


def lines_of(path, seen):
    """The lines of a header and of those that it includes, each header once, with their numbers,
    which registered operations depend on. Directives that include what needs a library stay."""
    seen.add(path)
    conditions = []
    yield f'#line 1 "{path}"'
    for number, line in enumerate((INCLUDE / path).read_text().splitlines(), 1):
        found = DIRECTIVE.match(line)
        word, rest = found.groups() if found else ("", "")
        if word in ("if", "ifdef", "ifndef"):
            conditions.append(rest)
        elif word in ("elif", "else"):  # of a library: there is none
            conditions[-1] = ALWAYS if conditions[-1].startswith("CLEAVE_HAS_") else word
        elif word == "endif":
            conditions.pop()
        name = rest[1:-1] if word == "include" else ""
        is_here = name.startswith("cleave/") and all(each == ALWAYS for each in conditions)
        if is_here and name not in seen:
            yield from lines_of(name, seen)
            yield f'#line {number + 1} "{path}"'
        else:
            is_left_out = is_here or (word, rest) == ("pragma", "once") or COMMENT.fullmatch(line)
            yield "" if is_left_out else line


def main(headers):
    seen = set()
    sys.stdout.write(OPENING)
    for path in (f"cleave/{header}" for header in headers):
        for line in lines_of(path, seen) if path not in seen else ():
            print(line)


if __name__ == "__main__":
    main(sys.argv[1:] or ["cleave.hpp"])
