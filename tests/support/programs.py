"""Programs of the examples, run by tests."""

import subprocess


def run(*command):
    """A finished program: its status, and all that it printed as `stdout`."""
    return subprocess.run([str(word) for word in command], text=True, timeout=300,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def check_refusals(cases, program, refusals):
    """Bad options, each with a part of the one line that the program says of them before it leaves
    with status 2."""
    for words, sentence in refusals:
        done = run(program, *words)
        cases.check(f"{' '.join(map(str, words))}: one line, exit code 2", done.returncode == 2
                    and sentence in done.stdout and done.stdout.count("\n") == 1, done.stdout)
