#!/usr/bin/env python3
"""The test harness reports failures, even of a single rank, and of cases that did not run.

usage: check.py PLANTED [MPIEXEC]
"""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases


def outcome(command):
    """The last line, the exit status and the output of the planted cases."""
    done = subprocess.run(command, text=True, timeout=240, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, CLEAVE_TIMEOUT="5"))
    lines = [line for line in done.stdout.splitlines() if line.startswith("cleave-cases: ")]
    return lines, done.returncode, done.stdout


def main(planted, mpiexec):
    cases = Cases()

    def expect(where, command, expected):
        lines, status, output = outcome(command)
        cases.check(f"{where}, the planted outcomes are counted once",
                    lines == ["cleave-cases: " + expected], output)
        cases.check(f"{where}, the run fails if a case does",
                    (status != 0) == (" 0 failed" not in expected), output)
        return output

    output = expect("on threads", [planted], "3 passed, 4 failed, 1 skipped")
    cases.check("a failed check names its rank", "rank 1 of 2" in output, output)
    cases.check("the error of the rank that failed is shown", "planted" in output, output)
    cases.check("a case that checked nothing is named",
                '"nothing is checked" has checked nothing' in output, output)
    if mpiexec is None:
        cases.skip("under mpirun", "built without MPI")
    else:
        expect("under mpirun -n 1", [mpiexec, "-n", "1", planted], "1 passed, 0 failed, 7 skipped")
        output = expect("under mpirun -n 2", [mpiexec, "-n", "2", planted],
                        "3 passed, 4 failed, 1 skipped")
        cases.check("a process names its rank", "rank 1 of 2" in output, output)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
