#!/usr/bin/env python3
"""libcleave-c from C, Fortran and Python: the programs of this folder, and those of
docs/languages.md, which print what the page says, on 1, 2 and 4 MPI processes.

usage: languages.py SOURCE_ROOT LIBRARY MPIRUN
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "support"))
from cases import Cases
from interpreter import python_that_runs

RANKS = [1, 2, 4]
PROGRAM = re.compile(r"^```(c|fortran|python)\n(.*?)^```\n```output\n(.*?)^```$",
                     re.MULTILINE | re.DOTALL)
ENDINGS = {"c": ".c", "fortran": ".f90", "python": ".py"}


class Languages:
    def __init__(self, root, library, mpirun, folder):
        self.library, self.mpirun, self.folder = pathlib.Path(library), mpirun, folder
        self.interop = root / "include/cleave/interop"
        self.compilers = {"c": shutil.which("mpicc"), "fortran": shutil.which("mpifort")}
        self.python = python_that_runs("import mpi4py, numpy")

    def missing(self, language):
        """Why programs of a language cannot be built; empty if they can."""
        if language == "python":
            return "" if self.python else "no mpi4py was found (Debian: python3-mpi4py python3-numpy)"
        if self.compilers[language] is None or language == "fortran" and shutil.which("gfortran") is None:
            return f"no MPI compiler for {language} was found (Debian: gcc, gfortran, libopenmpi-dev)"
        return ""

    def command(self, language, source):
        """The command that starts a program, after it has been compiled."""
        if language == "python":
            return [self.python, str(source)]
        program = pathlib.Path(self.folder) / source.stem
        flags, files = ["-Wall", "-Wextra", "-Werror", "-g"], [str(source)]
        if language == "fortran":
            flags += ["-std=f2018", "-Wno-uninitialized", "-Wno-maybe-uninitialized", "-J", self.folder]
            files.insert(0, str(self.interop / "cleave.f90"))
        subprocess.run([self.compilers[language], *flags, f"-I{self.interop.parent.parent}", *files,
                        str(self.library), f"-Wl,-rpath,{self.library.parent}", "-lm", "-o",
                        str(program)], check=True)
        return [str(program)]

    def run(self, command, ranks):
        done = subprocess.run([self.mpirun, "-n", str(ranks), *command], text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=os.environ | {"CLEAVE_LIBRARY": str(self.library),
                                                "PYTHONPATH": str(self.interop)})
        return done.stdout if done.returncode == 0 else f"{done.stdout}\nstatus {done.returncode}"


def add_cases(cases, name, output):
    """Adds the cases that a program of this folder has counted."""
    found = re.search(r"^cleave-cases: (\d+) passed, (\d+) failed, (\d+) skipped$", output,
                      re.MULTILINE)
    ran = found and int(found[1]) > 0 and found[2] == "0" and "\nstatus" not in output
    if cases.check(name, ran, output):
        cases.passed += int(found[1]) - 1


def main(root, library, mpirun):
    cases = Cases()
    page = (root / "docs/languages.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        languages = Languages(root, library, mpirun, folder)
        programs = [(language, HERE / f"{language}_ranks{ending}", None)
                    for language, ending in ENDINGS.items()]
        for number, (language, text, output) in enumerate(PROGRAM.findall(page)):
            source = pathlib.Path(folder) / f"page{number}{ENDINGS[language]}"
            source.write_text(text)
            programs.append((language, source, output))
        cases.check("the page has a program of each language",
                    {language for language, _, output in programs if output} == set(ENDINGS))
        for language, source, expected in programs:
            if missing := languages.missing(language):
                cases.skip(source.name, missing)
                continue
            command = languages.command(language, source)
            for ranks in RANKS:
                output = languages.run(command, ranks)
                name = f"{source.name} on {ranks} processes"
                if expected is None:
                    add_cases(cases, name, output)
                else:
                    cases.check(name, output == expected, output)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]))
