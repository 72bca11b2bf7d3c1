#!/usr/bin/env python3
"""Every operation of the library is in the list that verification and documentation run over, and
every function of cleave.hpp that calls one is in ops/engine/usage.hpp, whose errors say how to call it.

usage: operations.py SOURCE_ROOT

An operation is a struct that derives from Elementwise, ElementwiseOn, RealFunction or Composite, or one that has a
name and a kernel, a view or a body. The check runs on the library, where it must find no missing
operation, and on planted headers, where it must find one.
"""

import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

LIST = "include/cleave/ops/list"
STRUCT = re.compile(r"^(?:template <[^;{]*>\s*)?struct (\w+)(?:\s*:\s*([^{;]*))?\s*\{(.*?)^\};",
                    re.MULTILINE | re.DOTALL)
BASE = re.compile(r"\b(?:Elementwise(?:On)?|Composite|RealFunction)\b")
NAME = re.compile(r"static constexpr const char\* name\b")
BODY = re.compile(r"\b(?:kernel|view|body)\(")


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def operations(tree):
    """(header, name) of every operation."""
    for path in sorted((tree / "include").rglob("*.hpp")):
        for name, bases, inside in STRUCT.findall(without_comments(path.read_text())):
            named = NAME.search(inside)
            if named and (BASE.search(bases) or BODY.search(inside)):
                yield path.relative_to(tree).as_posix(), name


def missing(tree, list_text):
    words = set(re.findall(r"\w+", without_comments(list_text)))
    return [f"{header}: {name} is not in {LIST}" for header, name in operations(tree)
            if name not in words]


# Functions for gradients of own operations, and functions whose first argument is no tensor.
FOR_GRADIENTS = {"broadcast_dims", "equals"}
NO_TENSOR_FIRST = {"einsum", "map"}


def without_usage(root, usage):
    """Functions of the page of operations that cleave.hpp declares and the usage lacks."""
    base = root / "include"
    reached, todo = set(), ["cleave/cleave.hpp"]
    while todo:
        header = todo.pop()
        if header not in reached:
            reached.add(header)
            todo += re.findall(r"#include <(cleave/[^>]+)>", (base / header).read_text())
    declared = "".join((base / header).read_text() for header in sorted(reached)
                       if header.startswith("cleave/ops/") and not header.endswith("usage.hpp"))
    page = (root / "docs/ops.md").read_text()
    named = set(re.findall(r"^\| `(\w+)(?:<[^`]*?>)?\(", page, re.MULTILINE))
    listed = set(re.findall(r"CLEAVE_USAGE\(\s*(\w+),", usage))
    return sorted(name for name in named - listed - FOR_GRADIENTS - NO_TENSOR_FIRST
                  if re.search(rf"^constexpr (?:auto|decltype\(auto\)) {name}\(", declared, re.MULTILINE))


PLANTED = {
    "an elementwise operation": "struct Planted : Elementwise {\n"
    "  static constexpr const char* name = \"planted\";\n};\n",
    "an operation on elements with an order": "struct Planted : ElementwiseOn<Elements::ordered> {\n"
    "  static constexpr const char* name = \"planted\";\n};\n",
    "a composite": "template <int D>\nstruct Planted : Composite {\n"
    "  static constexpr const char* name = \"planted\";\n};\n",
    "an operation with a kernel": "template <class By, int D>\nstruct Planted {\n"
    "  static constexpr const char* name = \"planted\";\n"
    "  static void kernel(const auto& on) {}\n};\n",
}


def main(root):
    cases = Cases()
    text = "\n".join(path.read_text() for path in sorted((root / LIST).glob("*.hpp")))
    cases.check("operations are found", len(list(operations(root))) > 30)
    found = missing(root, text)
    cases.check("every operation is in the list", not found, "\n".join(found))
    usage = (root / "include/cleave/ops/engine/usage.hpp").read_text()
    found = without_usage(root, usage)
    cases.check("every function has a usage", not found, ", ".join(found))
    cases.check("a function without one is found",
                without_usage(root, re.sub(r"CLEAVE_USAGE\(matmul,.*", "", usage)) == ["matmul"])
    for what, source in PLANTED.items():
        with tempfile.TemporaryDirectory() as scratch:
            planted = pathlib.Path(scratch) / "include/cleave/ops/planted.hpp"
            planted.parent.mkdir(parents=True)
            planted.write_text("namespace cleave::ops {\n\n" + source + "\n}\n")
            cases.check(f"{what} that is missing from the list is found",
                        len(missing(pathlib.Path(scratch), text)) == 1)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
