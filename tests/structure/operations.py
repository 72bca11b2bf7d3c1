#!/usr/bin/env python3
"""Every operation of the library is registered or in the list that verification and documentation
run over, and every function of cleave.hpp that calls one has a usage, whose errors say how to call it.

usage: operations.py SOURCE_ROOT

An operation is a struct that derives from Elementwise or a base like RealFunction, or from Composite, or one that has a
name and a kernel, a view or a body. The check runs on the library, where it must find no missing
operation, and on planted headers, where it must find one.
"""

import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

OPS = "include/cleave/ops"
LIST = "tests/verify/list"
REGISTERED = re.compile(r"^CLEAVE_(?!USAGE)[A-Z_]+\(\w+,.*", re.MULTILINE)  # the topic, the names
USAGE = re.compile(r"^CLEAVE_(?:USAGE\(|(?!HELPER)[A-Z_]+\(\w+, )(\w+),", re.MULTILINE)
STRUCT = re.compile(r"^(?:template <[^;{]*>\s*)?struct (\w+)(?:\s*:\s*([^{;]*))?\s*\{(.*?)^\};",
                    re.MULTILINE | re.DOTALL)
ALIAS = re.compile(r"^using (\w+) = (\w+)<", re.MULTILINE)
BASE = re.compile(r"\b(?:Elementwise(?:On)?|Composite|FunctionOn|RealFunction|Rounding)\b")
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


def listed(tree):
    """The text of the list, and the lines that register operations."""
    lines = [line for path in sorted((tree / OPS).rglob("*.hpp"))
             for line in REGISTERED.findall(path.read_text())]
    return "\n".join([path.read_text() for path in sorted((tree / LIST).glob("*.hpp"))] + lines)


def missing(tree, list_text):
    """Operations that are not in the list: by their names, or by all of their aliases."""
    words = set(re.findall(r"\w+", without_comments(list_text)))
    aliases = {}
    for path in (tree / OPS).rglob("*.hpp"):
        for alias, name in ALIAS.findall(path.read_text()):
            aliases.setdefault(name, set()).add(alias)
    return [f"{header}: {name} is neither registered nor in {LIST}" for header, name in operations(tree)
            if name not in words and not (name in aliases and aliases[name] <= words)]


# Functions for gradients of own operations, and functions whose first argument is no tensor.
FOR_GRADIENTS = {"broadcast_dims"}
NO_TENSOR_FIRST = {"einsum", "map"}


def texts_for_users(root):
    """The headers of operations that cleave.hpp includes."""
    base = root / "include"
    reached, todo = set(), ["cleave/cleave.hpp"]
    while todo:
        header = todo.pop()
        if header not in reached:
            reached.add(header)
            todo += re.findall(r"#include <(cleave/[^>]+)>", (base / header).read_text())
    return "\n".join((base / header).read_text() for header in sorted(reached)
                     if header.startswith("cleave/ops/"))


def without_usage(root, text):
    """Functions of the page of operations that these headers declare without a usage."""
    page = (root / "docs/ops.md").read_text()
    named = set(re.findall(r"^\| `(\w+)(?:<[^`]*?>)?\(", page, re.MULTILINE))
    with_usage = set(USAGE.findall(text))
    return sorted(name for name in named - with_usage - FOR_GRADIENTS - NO_TENSOR_FIRST
                  if re.search(rf"^constexpr (?:auto|decltype\(auto\)) {name}\(", text, re.MULTILINE))


PLANTED = {
    "an elementwise operation": "struct Planted : Elementwise {\n"
    "  static constexpr const char* name = \"planted\";\n};\n",
    "an operation on elements with an order": "struct Planted : ElementwiseOn<Elements::ordered> {\n"
    "  static constexpr const char* name = \"planted\";\n};\n",
    "an operation with an alias": "template <bool B>\nstruct Planted : Elementwise {\n"
    "  static constexpr const char* name = \"planted\";\n};\nusing Alias = Planted<true>;\n"
    "using Maximum = Planted<false>;\n",
    "a composite": "template <int D>\nstruct Planted : Composite {\n"
    "  static constexpr const char* name = \"planted\";\n};\n",
    "an operation with a kernel": "template <class By, int D>\nstruct Planted {\n"
    "  static constexpr const char* name = \"planted\";\n"
    "  static void kernel(const auto& on) {}\n};\n",
}


def main(root):
    cases = Cases()
    text = listed(root)
    cases.check("operations are found", len(list(operations(root))) > 30)
    found = missing(root, text)
    cases.check("every operation is registered or in the list", not found, "\n".join(found))
    headers = texts_for_users(root)
    found = without_usage(root, headers)
    cases.check("every function has a usage", not found, ", ".join(found))
    cases.check("a function without one is found",
                without_usage(root, re.sub(r"CLEAVE_USAGE\(matmul,.*", "", headers)) == ["matmul"])
    unregistered = re.sub(r"CLEAVE_UNARY\(activations, gelu_tanh,.*", "", text)
    cases.check("a struct whose line is missing is found",
                [name for name in missing(root, unregistered) if name.endswith("GeluTanh is neither "
                 f"registered nor in {LIST}")])
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
