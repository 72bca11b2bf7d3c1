#!/usr/bin/env python3
"""Names on the pages exist: files, benchmarks, environment variables, Meson options.

usage: names.py SOURCE_ROOT

A check is a function from a tree to the missing names. It runs on the project, where it must find
none, and on a page with one planted name, which it must find.
"""

import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

FOLDERS = ["include", "tests", "bench", "examples", "docs", "cmake"]
SOURCES = (".hpp", ".cpp", ".cu", ".py", ".sh", ".md", ".txt", ".build", ".in", ".inc", ".tune")

CODE = re.compile(r"^```(?:sh|meson|cmake)\n(.*?)^```$|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^[\w.-]+(?:/[\w.-]+)*\.(?:hpp|cpp|cu|py|sh|md|inc)$")
FOLDER = re.compile(r"^(?:%s)(?:/[\w.-]+)+/?$" % "|".join(FOLDERS))

# Files that the reader writes, files of other projects, and files that a build makes.
OTHERS = re.compile(r"^(?:main|cleave|x|x_body)\.[ch]pp$|^ProcessGroupNCCL\.cpp$|^(?:build|/)|^tests/test_\w+$")


def pages(tree):
    return [path for path in [tree / "README.md", tree / "CONTRIBUTING.md",
                              *sorted((tree / "docs").glob("*.md"))] if path.exists()]


def code_of(page):
    """The pieces of code on a page: `inline`, or in blocks for the shell or for build files."""
    return [block or inline for block, inline in CODE.findall(page.read_text())]


def missing(tree, names, exists):
    """`PAGE: NAME` for each name that names(code) yields and that does not exist."""
    return [f"{page.relative_to(tree)}: {name}" for page in pages(tree) for code in code_of(page)
            for name in names(code) if not exists(page, name)]


def missing_files(tree):
    files = {path.name for folder in FOLDERS for path in (tree / folder).rglob("*")}

    def named(code):
        words = [word.strip("<>\"'(),;") for word in code.split()]
        return [word for word in words
                if (FILE.match(word) or FOLDER.match(word)) and not OTHERS.match(word)]

    def exists(page, name):
        if "/" not in name and name in files:
            return True
        places = [tree, page.parent, *(tree / place for place in
                                       ("include", "include/cleave", "docs", "tests"))]
        return any((place / name).exists() for place in places)

    return missing(tree, named, exists)


def missing_benchmarks(tree):
    def exists(_, name):
        return name == "NAME" or any((tree / "bench" / path).exists() for path in
                                     (f"{name}.cpp", f"{name}/{name}.py", f"{name}/{name}.sh"))

    return missing(tree, re.compile(r"bench/run\.sh (\w+)").findall, exists)


def missing_settings(tree):
    known = set()
    for folder in FOLDERS + [".ci"]:
        for path in (tree / folder).rglob("*"):
            if folder != "docs" and path.suffix in (*SOURCES, "") and path.is_file():
                known.update(re.findall(r"CLEAVE_\w+", path.read_text()))
    return missing(tree, re.compile(r"\bCLEAVE_[A-Z_]*[A-Z]\b").findall,
                   lambda _, name: name in known)


def missing_options(tree):
    file = tree / "meson_options.txt"
    known = re.findall(r"^option\('(\w+)'", file.read_text(), re.MULTILINE) if file.exists() else []
    known += ["buildtype", "optimization", "prefix", "unity", "unity_size", "cpp_args", "b_sanitize"]
    return missing(tree, re.compile(r"(?:^|\s)-D([a-z]\w*)=").findall,
                   lambda _, name: name in known)


RULES = [
    ("files that the pages name exist", missing_files, "`tests/core/test_planted.cpp`"),
    ("benchmarks that the pages name exist", missing_benchmarks, "`sh bench/run.sh planted`"),
    ("environment variables and macros that the pages name are read somewhere", missing_settings,
     "`CLEAVE_PLANTED=1`"),
    ("Meson options that the pages name exist", missing_options,
     "```sh\nmeson setup build -Dplanted=on\n```"),
]


def main(root):
    cases = Cases()
    for sentence, rule, planted in RULES:
        found = rule(root)
        cases.check(sentence, not found, "\n".join(found))
        with tempfile.TemporaryDirectory() as scratch:
            tree = pathlib.Path(scratch)
            (tree / "docs").mkdir()
            shutil.copy(root / "README.md", tree / "docs/page.md")
            before = rule(tree)
            (tree / "docs/page.md").write_text((tree / "docs/page.md").read_text() + planted + "\n")
            cases.check(f"a planted name is found: {sentence}", len(rule(tree)) == len(before) + 1)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
