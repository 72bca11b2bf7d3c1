#!/usr/bin/env python3
"""Programs under mpirun whose ranks fail: the others are told by name, all end, mpirun says so.

usage: mpi_failures.py PROGRAM MPIEXEC

CLEAVE_TEST_REPEAT=N runs each way to fail N times (default 1).
"""

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

TIMEOUT = 2  # CLEAVE_TIMEOUT of the ranks
RANKS = 3
LAST = RANKS - 1
GATHER = "all_gather of group 'world'"
BEGUN = "so far all is well"


class Outcome:
    def __init__(self, program, mpiexec, way, check):
        env = dict(os.environ, CLEAVE_TIMEOUT=str(TIMEOUT), CLEAVE_CHECK=check)
        begin = time.monotonic()
        try:
            done = subprocess.run([mpiexec, "-n", str(RANKS), program, way], text=True,
                                  timeout=60, env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.status, self.output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as e:
            self.status, self.output = None, (e.stdout or b"").decode(errors="replace")
        self.seconds = time.monotonic() - begin

    def reports(self, rank):
        """What a rank has written to stderr."""
        return [line for line in self.output.splitlines() if line.startswith(f"rank {rank}: ")]

    def seen_by(self, rank):
        """The error that a rank has caught."""
        start = f"rank {rank} saw: "
        return [line for line in self.output.splitlines() if line.startswith(start)]

    def __str__(self):
        return f"status {self.status} after {self.seconds:.1f} s:\n{self.output}"


def told(outcome, text, ranks=range(LAST)):
    """Whether each of those ranks, and no other one of them, has seen just one error: that."""
    return all(len(outcome.seen_by(r)) == 1 and text in outcome.seen_by(r)[0] for r in ranks)


def planted(outcome, report="planted"):
    return (told(outcome, f"rank {LAST} failed: {report}")
            and outcome.reports(LAST) == [f"rank {LAST}: {report}"]
            and not any(outcome.reports(r) for r in range(LAST)))


# way: (sentence, exit status or None for any but 0, seconds to end within, what must hold)
WAYS = {
    "none": ("ranks that all return end well", 0, 10,
             lambda o: o.output == BEGUN + "\n"),
    "own MPI": ("MPI that the user has started stays the user's to finalise", 0, 10,
                lambda o: o.output == BEGUN + "\n"),
    "code": ("the code that all ranks return is that of mpirun", 3, 10,
             lambda o: "rank 0" not in o.output and "rank 1" not in o.output),
    "code of one": ("the code that one rank returns is that of mpirun", 3, 10,
                    lambda o: "rank 0" not in o.output and "rank 1" not in o.output),
    "throw": ("a rank that throws reports its error, and the others are told", 1, 10, planted),
    "throw an int": ("a rank may throw anything", 1, 10,
                     lambda o: planted(o, "an exception that is no std::exception")),
    "catch": ("a failure is one, even if the others catch it", 1, 10, planted),
    "large": ("long messages under way do not keep the ranks", 1, 15, planted),
    "subgroup": ("ranks that make a group are told who will not come", 1, 10, planted),
    "chain": ("ranks that wait for ranks that wait are told who has failed", 1, 10, planted),
    "all throw": ("every rank that fails by itself reports it", 1, 10,
                  lambda o: all(len(o.reports(r)) <= 1 for r in range(RANKS))
                  and any(o.reports(r) == [f"rank {r}: planted"] for r in range(RANKS))),
    "leave": ("a rank whose function returns early is named", 1, 10,
              lambda o: told(o, f"rank {LAST} left while rank")
              and not o.seen_by(LAST) and not o.reports(LAST)),
    "stall": ("a rank that comes too late is named, and told", 1, 20,
              lambda o: told(o, f"rank {LAST} did not come to {GATHER} within {TIMEOUT} s")
              and told(o, f"rank {LAST} did not come to {GATHER}", [LAST])),
    "stall for ever": ("a rank that never comes is named, and ended", 1, 30,
                       lambda o: told(o, f"rank {LAST} did not come to {GATHER}")),
    "wrong call": ("a rank whose call is wrong in itself reports it, and the others are told",
                   1, 10, lambda o: planted(o, "all_gather: 0 pieces for 3 ranks")),
    "wrong size": ("ranks that send other sizes than expected are told so", 1, 10,
                   lambda o: told(o, " bytes that rank ", range(RANKS))),
    "wrong kind": ("ranks that make different calls are told so", 1, 10,
                   lambda o: told(o, " bytes that rank ", range(RANKS))),
    "die": ("a rank that is killed ends the program", None, 10, lambda o: BEGUN in o.output),
    "exit": ("a rank that calls exit ends the program", None, 10, lambda o: BEGUN in o.output),
    "many": ("worlds fail one after the other in the same processes", 0, 60,
             lambda o: "60 worlds failed, 0 errors were wrong" in o.output),
}

# What is different when every call is compared first.
COMPARED = {
    "throw": WAYS["throw"],
    "leave": WAYS["leave"],
    "stall": WAYS["stall"],
    "wrong size": ("ranks that disagree about sizes are told so before anything moves", 1, 10,
                   lambda o: told(o, "ranks of group 'world' disagree: rank 0 runs all_gather of "
                                     "3000 float32", range(RANKS))),
    "wrong kind": ("ranks that disagree about the kind are told so before anything moves", 1, 10,
                   lambda o: told(o, "ranks of group 'world' disagree: rank 0 runs all_gather",
                                  range(RANKS))),
}


def main(program, mpiexec):
    cases = Cases()
    for check, ways in (("local", WAYS), ("collective", COMPARED)):
        for way, (sentence, status, seconds, holds) in ways.items():
            for _ in range(int(os.environ.get("CLEAVE_TEST_REPEAT", "1"))):
                o = Outcome(program, mpiexec, way, check)
                ended = o.status not in (None, 0) if status is None else o.status == status
                cases.check(f"{sentence} ({way}, {check} checks)",
                            ended and o.seconds < seconds and holds(o), str(o))
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
