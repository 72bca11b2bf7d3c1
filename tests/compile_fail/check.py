#!/usr/bin/env python3
"""Code that must not compile does not, and the compiler's error contains the expected sentence.

usage: check.py COMPILER FILE.cpp .. [-- FLAG ..]

A file is a program that compiles: the control. Sections of it that must not compile stand between

    #ifdef misspelled_axis  // says: cleave: the mesh has no such axis

and its #endif. The sections of a file are compiled together, with their names defined: the compiler
must report an error in the lines of each that contains its sentence. Sections for which it does not
(what one section instantiates is not an error a second time) are compiled separately: then the
compiler must fail, and its output must contain the sentence. `// says within 20 kB: ..` also limits
the length of what it says. Sections before the first header of cleave are compiled with the
headers, others with precompiled ones.
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
from precompiled import compiler_command, precompiled

SECTION = re.compile(r"^#ifdef (\w+)  // says(?: within (\d+) kB)?: (.+)$", re.MULTILINE)
# Lines that say where the code of an error is used: g++ prints them before it, clang++ after it.
BEFORE = re.compile(r": In |required |^In file included|^ +from ")
AFTER = re.compile(r"note: (in instantiation|while |in call)|requested here")


def compile(command, source, flags):
    done = subprocess.run([*command, "-fsyntax-only", *flags, str(source)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def says(output, sentence):
    """Whether the sentence is part of an error, not of a source line that the compiler quotes."""
    errors = [line for line in output.splitlines() if re.search(r"\berror: ", line)]
    return any(sentence in line for line in errors)


def errors_of(output, source):
    """(error, its whole text, lines of the source file that it names as its place or its use)."""
    lines = output.splitlines()
    place = re.compile(re.escape(str(source)) + r":(\d+):")
    begins = []  # of the text of each error
    for i in (i for i, line in enumerate(lines) if re.search(r"\berror: ", line)):
        first = i
        while first > 0 and BEFORE.search(lines[first - 1]):
            first -= 1
        begins.append((first, i))
    for (first, i), (last, _) in zip(begins, [*begins[1:], (len(lines), 0)]):
        used = [*lines[first:i + 1], *filter(AFTER.search, lines[i + 1:last])]
        numbers = {int(number) for text in used for number in place.findall(text)}
        yield lines[i], "\n".join(lines[first:last]), numbers


def found_together(command, headers, source, sections):
    """The sections of a file that say their sentence, if all are compiled at once."""
    text = source.read_text()
    first_header = text.find("#include <cleave/")
    lines = {}
    for match in SECTION.finditer(text):
        if match.start() > first_header:
            begin = text.count("\n", 0, match.start()) + 1
            end = text.count("\n", 0, text.index("\n#endif", match.end())) + 1
            lines[match[1]] = range(begin, end + 1)
    unlimited = ["-ferror-limit=0"] if "clang" in command[0] else []
    _, output = compile(command, source, [*headers, *unlimited, *(f"-D{name}" for name in lines)])
    errors = list(errors_of(output, source))
    found = set()
    for section, most, sentence in sections:
        own = [(error, said) for error, said, numbers in errors
               if section in lines and any(number in lines[section] for number in numbers)]
        if any(sentence in error for error, _ in own) and (
                not most or sum(len(said) for _, said in own) <= 1000 * int(most)):
            found.add(section)
    return found


def main(compiler, sources, flags):
    cases = Cases()
    command = [*compiler_command(compiler), *flags]
    sections = {source: SECTION.findall(source.read_text()) for source in sources}
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        headers = precompiled(scratch, command, ["cleave/cleave.hpp"])
        # Without precompiled headers and sections: shows that the file includes what it needs.
        controls = pool.map(lambda source: compile(command, source, []), sources)
        found = dict(zip(sources, pool.map(
            lambda source: found_together(command, headers, source, sections[source]), sources)))

        def run(job):
            source, section = job
            before = source.read_text().partition("#include <cleave/")[0]
            first = f"#ifdef {section} " in before
            return compile(command, source, [*([] if first else headers), f"-D{section}"])

        for source, (status, output) in zip(sources, controls):
            cases.check(f"{source.name} compiles without its sections", status == 0, output)
        alone = [(source, section) for source in sources for section, *_ in sections[source]
                 if section not in found[source]]
        compiled = dict(zip(alone, pool.map(run, alone)))
        for source in sources:
            for section, most, sentence in sections[source]:
                if section in found[source]:
                    cases.check(f'{source.name}: {section} says "{sentence}"', True)
                    continue
                status, output = compiled[source, section]
                if cases.check(f"{source.name}: {section} does not compile", status != 0):
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
