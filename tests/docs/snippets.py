#!/usr/bin/env python3
"""The C++ of README.md and docs/*.md compiles, runs, and prints what the pages say it prints.

usage: snippets.py SOURCE_ROOT COMPILER [PAGE ..]

Each ```cpp block is one of these:

- with a `main`: a complete program;
- beginning with `#include`: a file that is only compiled;
- beginning with `template` or `struct`: declarations, which precede the later blocks of the page;
- anything else: the body of a rank's function on a 2 x 2 mesh of dp and tp, where `print(text)`
  writes a line on rank 0.

Programs and bodies run on 4 ranks, in the folder of the digits. Declarations and bodies of a page
are compiled as one program, and if that does not compile, separately. An ```output block is the output of
the preceding C++ block. Blocks that are not compiled are marked otherwise (```text, ```sh). Links
to files must lead to files. Pages that need a library are compiled with its flags, where it links.
"""

import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from precompiled import compiler_command, precompiled

# Headers of libraries: a block that includes one is compiled for it, if pkg-config finds it.
LIBRARIES = {
    "cleave/comm/mpi.hpp": ("mpi-cxx", ["-DCLEAVE_HAS_MPI=1"]),
    "cleave/interop/hdf5.hpp": ("hdf5-openmpi", ["-DCLEAVE_HAS_MPI=1", "-DCLEAVE_HAS_HDF5=1"]),
    "cleave/interop/netcdf.hpp":
        ("netcdf-mpi mpi-cxx", ["-DCLEAVE_HAS_MPI=1", "-DCLEAVE_HAS_NETCDF=1"]),
    "cleave/interop/petsc.hpp": ("PETSc mpi-cxx", ["-DCLEAVE_HAS_MPI=1"]),
    "cleave/interop/scalapack_solvers.hpp":
        ("scalapack-openmpi mpi-cxx", ["-DCLEAVE_HAS_MPI=1", "-DCLEAVE_HAS_SCALAPACK=1"]),
}

BLOCK = re.compile(r"^```(cpp|c|fortran|python|output)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OTHERS = ("c", "fortran", "python")  # languages.py of tests/interop runs these
LINK = re.compile(r"\]\(([^):#]+)(?:#[^)]*)?\)")

FILE_SCOPE = """#include <cleave/cleave.hpp>
#include <cleave/redistribute/exchange.hpp>
#include <cstdio>
using namespace cleave;
"""

RANK_FUNCTION = """
void %s(World& world) {
  using axes::dp;
  using axes::tp;
  [[maybe_unused]] const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
  [[maybe_unused]] const auto print = [&](const std::string& text) {
    if (world.rank() == 0) std::printf("%%s%%s", text.c_str(), text.ends_with('\\n') ? "" : "\\n");
  };
%s
}
"""
CHOICE = "SNIPPET"  # an environment variable: which body a program of a page runs

# Of pages: flags of the library that they need, and a function of it.
NEEDS = {"docs/linear_algebra.md": (["-DCLEAVE_HAS_LAPACK=1", "-lopenblas"], "zgetrf_")}

MAIN = """#include <cleave/comm/run.hpp>
void run_rank(cleave::World& world);
int main(int argc, char** argv) { return cleave::run(argc, argv, run_rank); }
"""


@dataclasses.dataclass
class Snippet:
    where: str    # page:line
    block: str    # as it stands on the page
    source: str   # a file
    runs: bool
    complete: bool = False  # used as it stands on the page
    library: str = None  # a key of LIBRARIES
    prints: str = None
    flags: tuple = ()

    def promise(self):
        return "compiles" + (" and runs" if self.runs else "") + \
            ("" if self.prints is None else " and prints that")


def snippets_of(root, page):
    """All C++ blocks of a page."""
    text = page.read_text()
    flags = tuple(NEEDS.get(str(page.relative_to(root)), ((),))[0])
    declared, before = "", ""
    found = []
    for match in BLOCK.finditer(text):
        kind, block = match.groups()
        language, before = before, kind
        if kind in OTHERS or kind == "output" and language in OTHERS:
            continue
        where = f"{page.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 2}"
        opening = block.split(None, 1)[0] if block.strip() else ""
        if kind == "output":
            assert found and found[-1].runs, f"{where}: no program prints this"
            found[-1].prints = block
        elif "int main(" in block or opening == "#include":
            library = next((header for header in LIBRARIES if f"<{header}>" in block), None)
            found.append(Snippet(where, block, block, "int main(" in block, True, library))
        elif opening in ("template", "struct") or opening.startswith("template<"):
            declared += block
            found.append(Snippet(where, block, FILE_SCOPE + declared, False))
        else:
            found.append(Snippet(where, block,
                                 FILE_SCOPE + declared + RANK_FUNCTION % ("run_rank", block), True))
    for snippet in found:
        snippet.flags = flags
    return found


def joined(snippets):
    """A file with the declarations and bodies of a page, in order, that runs the body CHOICE names."""
    parts = [RANK_FUNCTION % (f"snippet{i}", snippet.block) if snippet.runs else snippet.block
             for i, snippet in enumerate(snippets)]
    calls = "".join(f"  if (choice == {i}) snippet{i}(world);\n"
                    for i, snippet in enumerate(snippets) if snippet.runs)
    return (FILE_SCOPE + "#include <cstdlib>\n" + "".join(parts) + "void run_rank(World& world) {\n"
            f'  const int choice = std::atoi(std::getenv("{CHOICE}"));\n{calls}}}\n')


def dead_links(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [link for link in LINK.findall(re.sub(r"`[^`\n]*`", "", text))
            if not (page.parent / link).exists()]


def lines(text):
    return [line.rstrip() for line in text.strip("\n").split("\n")]


def library_flags(header):
    """How to compile for the library of a header; None if it was not found."""
    if header is None:
        return []
    packages, macros = LIBRARIES[header]
    done = subprocess.run(["pkg-config", "--cflags", *packages.split()], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        return None
    prefix = subprocess.run(["pkg-config", "--variable=prefix", packages.split()[0]], text=True,
                            stdout=subprocess.PIPE, check=True).stdout.strip()
    return [*macros, *done.stdout.split(), f"-I{prefix}/include"]


class Workshop:
    """What programs have in common, compiled once. Complete ones of the README and those for a
    library are header-only, others use the compiled mode."""

    def __init__(self, root, compiler, folder):
        self.root = root
        self.command = [*compiler_command(compiler), f"-I{root}/include", "-pthread"]
        self.compiled = [*self.command, "-DCLEAVE_COMPILED=1"]
        self.headers = precompiled(folder, self.compiled, re.findall("<(.*)>", FILE_SCOPE))
        self.main = self.object(folder, "main.o", MAIN)
        self.library = self.object(folder, "library.o", "#include <cleave/compiled.hpp>\n")

    def object(self, folder, name, source):
        """Compiles the source. Returns the name of the object file."""
        path = str(pathlib.Path(folder) / name)
        subprocess.run([*self.compiled, "-x", "c++", "-", "-c", "-o", path], text=True, input=source,
                       check=True)
        return path

    def compiling(self, snippet, source, program):
        """The command line for a snippet."""
        command, headers, objects = self.compiled, self.headers, [self.main, self.library]
        if snippet.complete:
            headers, objects = [], [self.library]
            if snippet.library or snippet.where.startswith("README"):
                command, objects = [*self.command, *library_flags(snippet.library)], []
        if not snippet.runs:
            return [*command, *headers, "-fsyntax-only", str(source)]
        return [*command, *headers, str(source), *objects, "-o", str(program), *snippet.flags]

    def lacks(self, flags, function):
        """Whether a program that calls the function does not link with the flags."""
        source = f'extern "C" void {function}(); int main() {{ {function}(); }}'
        return subprocess.run([*self.command, "-x", "c++", "-", *flags, "-o", os.devnull], text=True,
                              input=source, stderr=subprocess.DEVNULL).returncode != 0


def compile_to(workshop, snippet, source, program):
    """The compiler's message if the snippet does not compile, else an empty text."""
    source.write_text(snippet.source)
    done = subprocess.run(workshop.compiling(snippet, source, program), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return "" if done.returncode == 0 else done.stdout[-4000:] or f"status {done.returncode}"


def run_error(workshop, snippet, program, choice):
    """What is wrong with the output of a program that runs a snippet; empty if all is well."""
    done = subprocess.run([str(program), "--ranks", "4"], text=True, timeout=120,
                          cwd=workshop.root / "examples/kmeans", stdin=subprocess.DEVNULL,
                          env={**os.environ, CHOICE: str(choice)},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        return (done.stdout + done.stderr)[-4000:] or f"status {done.returncode}"
    if snippet.prints is not None and lines(done.stdout + done.stderr) != lines(snippet.prints):
        return "it prints\n" + done.stdout + done.stderr
    return ""


def try_out(workshop, snippets):
    """Checks snippets that are compiled as one program, or one of any kind. Returns an error message
    for each; empty if all is well."""
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "snippet.cpp"
        program = pathlib.Path(scratch) / "snippet"
        whole = snippets[0]
        if len(snippets) > 1:
            whole = dataclasses.replace(whole, source=joined(snippets), runs=True)
        error = compile_to(workshop, whole, source, program)
        if error and len(snippets) > 1:
            alone = [try_out(workshop, [snippet])[0] for snippet in snippets]
            return alone if any(alone) else [error] * len(snippets)
        return [error or snippet.runs and run_error(workshop, snippet, program, i) or ""
                for i, snippet in enumerate(snippets)]


def main(root, compiler, names):
    cases = Cases()
    pages = [root / name for name in names] or \
        [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    for page in pages:
        dead = dead_links(page)
        cases.check(f"the links of {page.relative_to(root)} lead to files", not dead, ", ".join(dead))
    found = []
    for snippet in [snippet for page in pages for snippet in snippets_of(root, page)]:
        if library_flags(snippet.library) is None:
            cases.skip(f"{snippet.where} compiles", f"no {LIBRARIES[snippet.library][0]} was found")
        else:
            found.append(snippet)
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        workshop = Workshop(root, compiler, scratch)
        for page, (flags, function) in NEEDS.items():
            of_page = [snippet for snippet in found if snippet.where.startswith(page)]
            if of_page and workshop.lacks(flags, function):
                cases.skip(f"the snippets of {page}", f"{flags[-1]} does not link")
                found = [snippet for snippet in found if snippet not in of_page]
        programs = collections.defaultdict(list)
        for snippet in found:
            page = snippet.where.partition(":")[0]
            programs[snippet.where if snippet.complete else page].append(snippet)
        wrong = pool.map(lambda snippets: try_out(workshop, snippets), programs.values())
        for snippets, outputs in zip(programs.values(), wrong):
            for snippet, output in zip(snippets, outputs):
                cases.check(f"{snippet.where} {snippet.promise()}", not output, output)
    if not names:
        cases.check("the README shows a program",
                    any(snippet.where.startswith("README") and snippet.runs for snippet in found))
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]))
