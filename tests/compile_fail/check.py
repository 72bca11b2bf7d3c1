#!/usr/bin/env python3
"""Code that must not compile does not, and the compiler's error contains the expected sentence.

usage: check.py COMPILER FILE.cpp .. [-- FLAG ..]

A file is a program that compiles: the control. Sections of it that must not compile stand between

    #ifdef misspelled_axis  // says: cleave: the mesh has no such axis

and its #endif. Each section is compiled separately, with its name defined: the compiler must fail,
and its output must contain the sentence. `// says within 20 kB: ..` also limits its length. Sections
before the first header of cleave are compiled with the headers, others with precompiled ones.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from precompiled import precompiled

SECTION = re.compile(r"^#ifdef (\w+)  // says(?: within (\d+) kB)?: (.+)$", re.MULTILINE)


def compile(command, source, flags):
    done = subprocess.run([*command, "-fsyntax-only", *flags, str(source)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def says(output, sentence):
    """Whether the sentence is part of an error, not of a source line that the compiler quotes."""
    errors = [line for line in output.splitlines() if re.search(r"\berror: ", line)]
    return any(sentence in line for line in errors)


def main(compiler, sources, flags):
    cases = Cases()
    jobs = []
    for source in sources:
        jobs.append((source, None, None, None))
        jobs += [(source, *section) for section in SECTION.findall(source.read_text())]

    command = [compiler, "-std=c++20", *flags]
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        headers = precompiled(scratch, command, ["cleave/cleave.hpp"])

        def run(job):
            source, section, *_ = job
            if section is None:  # shows that the file includes what it needs
                return compile(command, source, [])
            before = source.read_text().partition("#include <cleave/")[0]
            first = f"#ifdef {section} " in before
            return compile(command, source, [*([] if first else headers), f"-D{section}"])

        for (source, section, most, sentence), (status, output) in zip(jobs, pool.map(run, jobs)):
            if section is None:
                cases.check(f"{source.name} compiles without its sections", status == 0, output)
            elif cases.check(f"{source.name}: {section} does not compile", status != 0):
                cases.check(f'{source.name}: {section} says "{sentence}"',
                            says(output, sentence), output[:4000])
                if most:
                    cases.check(f"{source.name}: {section} says so within {most} kB",
                                len(output) <= 1000 * int(most), f"{len(output)} characters")
    return cases.finish()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    sys.exit(main(arguments[0], list(map(pathlib.Path, arguments[1:split])), arguments[split + 1:]))
