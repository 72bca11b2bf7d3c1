"""Runs the example programs in tests."""

import subprocess


def run(*command):
    """Runs a program to its end. The result has its status, and as `stdout` all that it printed."""
    return subprocess.run([str(word) for word in command], text=True, timeout=300,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def check_refusals(cases, program, refusals):
    """Bad options, each with a part of the one-line message that the program prints before it exits
    with status 2."""
    for words, sentence in refusals:
        done = run(program, *words)
        cases.check(f"{' '.join(map(str, words))}: one line, exit code 2", done.returncode == 2
                    and sentence in done.stdout and done.stdout.count("\n") == 1, done.stdout)
