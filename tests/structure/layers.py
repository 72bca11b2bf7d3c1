#!/usr/bin/env python3
"""Which header may include what: layers form an order, costly headers stay out, nothing is orphaned.

usage: layers.py SOURCE_ROOT

Each rule is a function from a tree of headers to its violations. It runs on the library, where it
must find none, and on a tree with one planted violation, which it must find.
"""

import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

ORDER = ["core", "tensor", "kernels", "comm", "async", "mesh", "functional", "placement", "redistribute",
         "dtensor", "rules", "ops", "interop", "spmd", "grad", "nn", "parallel"]

# Headers outside of the layers that include nothing, for all layers.
LEAVES = {"version.hpp"}

# Layers that may include fewer layers than all those below them.
ONLY = {
    "placement": {"core", "placement"},
    "rules": {"core", "placement", "rules"},
}

COSTLY = {"iostream", "ranges", "regex", "functional", "format", "filesystem", "map",
          "unordered_map", "random"}

# Layers not included by cleave.hpp: only programs that include them pay for them.
CHOSEN = {"interop", "spmd", "grad", "nn", "parallel"}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def headers(tree):
    """The text of every header, by its path below include/cleave."""
    base = tree / "include" / "cleave"
    return {path.relative_to(base).as_posix(): path.read_text()
            for path in sorted(base.rglob("*.hpp"))}


def is_of_cuda(header):
    return "cuda" in header or re.match(r"comm/(device|nccl)\b", header) is not None


def included(text):
    return INCLUDE.findall(text)


def layer_of(header):
    return header.split("/")[0] if "/" in header else None


def own(header_name):
    """The path below include/cleave, or None for other projects' headers."""
    return header_name[len("cleave/"):] if header_name.startswith("cleave/") else None


def order_violations(tree):
    found = []
    for header, text in headers(tree).items():
        layer = layer_of(header)
        if layer is None:
            continue
        if layer not in ORDER:
            found.append(f"{header}: no layer is named {layer}")
            continue
        for target in filter(None, map(own, included(text))):
            other = layer_of(target)
            if target in LEAVES and not included(headers(tree)[target]):
                continue
            if other is None or other not in ORDER or ORDER.index(other) > ORDER.index(layer):
                found.append(f"{header} includes {target}, which is above it")
            for place, allowed in ONLY.items():
                if header.startswith(place + "/") and other not in allowed:
                    found.append(f"{header} includes {target}; {place} needs only "
                                 + ", ".join(sorted(allowed)))
    return found


def cost_violations(tree):
    found = []
    for header, text in headers(tree).items():
        for target in included(text):
            mpi = target == "mpi.h" or target.startswith("boost/") and layer_of(header) != "interop"
            if mpi and not header.startswith("comm/mpi/"):
                found.append(f"{header} includes <{target}>, which belongs to comm/mpi/")
            if target in COSTLY and layer_of(header) not in CHOSEN:
                found.append(f"{header} includes <{target}>, which every user would pay for")
    return found


def form_violations(tree):
    found = []
    for header, text in headers(tree).items():
        if not text.startswith("//"):
            found.append(f"{header} does not open with what it is for")
        if text.count("#pragma once\n") != 1:
            found.append(f"{header} has no #pragma once")
        if '#include "' in text:
            found.append(f'{header} includes by "", not by <cleave/..>')
    return found


def shared_names(tree):
    """Headers with the name of another one: includes, errors and searches would be ambiguous."""
    places = {}
    for header in headers(tree):
        places.setdefault(header.split("/")[-1], []).append(header)
    return [" and ".join(place) + " have one name" for place in places.values() if len(place) > 1]


def orphans(tree):
    """Headers of the host side that no header for users includes."""
    texts = headers(tree)
    reached, todo = set(), ["cleave.hpp", "compiled.hpp", "grad.hpp", "nn.hpp", "parallel.hpp",
                          "spmd.hpp", "redistribute/needs.hpp"]
    todo += [header for header in texts if layer_of(header) == "interop"]
    while todo:
        header = todo.pop()
        if header in reached or header not in texts:
            continue
        reached.add(header)
        todo += filter(None, map(own, included(texts[header])))
    return [f"no header for users reaches {header}"
            for header in texts if header not in reached and not is_of_cuda(header)]


def stray_bodies(tree):
    """Definitions of the compiled mode: x_body.hpp is included only by x.hpp, without
    CLEAVE_COMPILED, and by compiled.hpp or compiled_cuda.hpp."""
    found = []
    texts = headers(tree)
    readers = ("compiled.hpp", "compiled_cuda.hpp")
    for header, text in texts.items():
        for target in filter(None, map(own, included(text))):
            if not target.endswith("_body.hpp") or header in readers:
                continue
            guarded = f"#if !CLEAVE_COMPILED\n#include <cleave/{target}>\n#endif\n"
            if header != target.replace("_body.hpp", ".hpp") or not text.endswith(guarded):
                found.append(f"{header} includes {target}")
        reader = readers[is_of_cuda(header)]
        if header.endswith("_body.hpp") and f"cleave/{header}" not in included(texts[reader]):
            found.append(f"{reader} does not include {header}")
    return found


def unlisted_macros(tree):
    """Identifiers of one letter for which core/macros.hpp does not check that they are no macros."""
    texts = headers(tree)
    listed = set(re.findall(r"defined\((\w)\)", texts.get("core/macros.hpp", "")))
    found = []
    for header, text in texts.items():
        code = re.sub(r"//.*|'(\\.|[^'\\\n])'|\"(\\.|[^\"\\\n])*\"", " ", text)
        used = set(re.findall(r"(?<![\w'.])[A-Za-z](?!\w)", code))
        found += [f"{header} uses {name}, which core/macros.hpp does not list"
                  for name in sorted(used - listed)]
    return found


def unlisted_tests(tree):
    """Tests neither named by a meson.build nor included by a source that is."""
    built = set()
    for listing in (tree / "tests").rglob("meson.build"):
        for name in re.findall(r"'([^']+\.cpp)'", listing.read_text()):
            path = listing.parent / name
            parts = re.findall(r'^#include "([^"]+)"', path.read_text() if path.exists() else "",
                               re.MULTILINE)
            built.update((path.parent / part).resolve() for part in [path.name] + parts)
    return [f"{path.relative_to(tree)} is built by no meson.build"
            for path in sorted((tree / "tests").rglob("test_*.cpp")) if path.resolve() not in built]


def misplaced_tests(tree):
    """Tests in a folder named like a layer that the layer itself does not have."""
    found = []
    for path in sorted((tree / "tests").rglob("test_*.cpp")):
        folder = path.parent.relative_to(tree / "tests")
        if folder.parts[0] in ORDER and not (tree / "include/cleave" / folder).is_dir():
            found.append(f"{path.relative_to(tree)}: include/cleave/ has no folder {folder}")
    return found


def unversioned(tree):
    """Headers that declare names of cleave outside the inline namespace of the major version, so
    that two versions in one program would share symbols."""
    texts = headers(tree)
    major = re.search(r"CLEAVE_VERSION_MAJOR (\d+)", texts.get("version.hpp", ""))
    expected = f"::inline v{major[1] if major else 0}"
    return [f"{header} opens cleave{rest}, not cleave{expected}"
            for header, text in texts.items()
            for rest in re.findall(r"^namespace cleave([\w: ]*?) *\{", text, re.MULTILINE)
            if rest != expected and not rest.startswith(expected + "::")]


def biased_stand_ins(tree):
    """Sources of the stand-ins that include the library's headers: they would share its errors."""
    return [f"{path.relative_to(tree)} includes {name}"
            for path in sorted((tree / "tests/support").glob("*_stand_in/**/*.?pp"))
            for name in included(path.read_text()) if name.startswith("cleave/")]


RULES = [
    ("a layer includes only the layers below it", order_violations,
     ("include/cleave/core/planted.hpp", "#include <cleave/tensor/tensor.hpp>\n")),
    ("rules/ and placement/ include no more than they need", order_violations,
     ("include/cleave/rules/planted.hpp", "#include <cleave/comm/communicator.hpp>\n")),
    ("costly headers stay out", cost_violations,
     ("include/cleave/core/planted.hpp", "#include <iostream>\n")),
    ("MPI is known to comm/mpi/ alone", cost_violations,
     ("include/cleave/mesh/planted.hpp", "#include <mpi.h>\n")),
    ("a header opens with a comment and has one #pragma once", form_violations,
     ("include/cleave/core/planted.hpp", "namespace cleave {}\n")),
    ("no two headers have one name", shared_names,
     ("include/cleave/core/planted.hpp include/cleave/tensor/planted.hpp", "")),
    ("every header is reached by one for users", orphans,
     ("include/cleave/core/planted.hpp", "// Nobody includes this.\n#pragma once\n")),
    ("bodies are read by their headers and by the compiled mode alone", stray_bodies,
     ("include/cleave/core/planted.hpp", "#include <cleave/comm/run_body.hpp>\n")),
    ("names of one letter are checked not to be macros", unlisted_macros,
     ("include/cleave/core/planted.hpp", "template <class T>\nstruct Planted;\n")),
    ("every test file is built", unlisted_tests,
     ("tests/core/test_planted.cpp", "")),
    ("tests are in the folders of what they test", misplaced_tests,
     ("tests/comm/planted/test_planted.cpp", "")),
    ("names are in the inline namespace of the version", unversioned,
     ("include/cleave/core/planted.hpp", "namespace cleave::detail {}\n")),
    ("stand-ins for libraries know nothing of cleave", biased_stand_ins,
     ("tests/support/cuda_stand_in/planted.cpp", "#include <cleave/core/shape.hpp>\n")),
]


def main(root):
    cases = Cases()
    for sentence, violations, (paths, text) in RULES:
        found = violations(root)
        cases.check(sentence, not found, "\n".join(found))
        with tempfile.TemporaryDirectory() as scratch:
            for path in paths.split():
                planted = pathlib.Path(scratch) / path
                planted.parent.mkdir(parents=True)
                planted.write_text(text)
            cases.check(f"a planted violation is found: {sentence}",
                        violations(pathlib.Path(scratch)))
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
