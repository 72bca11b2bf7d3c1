#!/usr/bin/env python3
"""Programs under mpirun whose ranks fail: errors name the rank, all ranks end, mpirun reports it.

Where processes share memory, every rank gets an exception; elsewhere one rank reports the error and
ends the job.

usage: failures.py PROGRAM MPIEXEC [WAY..]

WAY..                   runs only these ways to fail ("throw", "exit in barrier"); default: all
CLEAVE_TEST_REPEAT=N runs each way to fail N times (default 1).
"""

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from cases import Cases

TIMEOUT = 2  # CLEAVE_TIMEOUT of the ranks, in seconds
LONG = 30  # where no time-out but the failed rank ends the others, which takes long under load
REPEAT = int(os.environ.get("CLEAVE_TEST_REPEAT", "1"))
RANKS = 3
LAST = RANKS - 1
GATHER = "all_gather of group 'world'"
PAST_WORK = "it ended while asynchronous work was in progress"
BEGUN = "so far all is well"
OURS = ("cleave: ", "rank ", "run: ", BEGUN)  # prefixes of the lines of the library or the program

# A launcher that prints something first, as MPI and hwloc do when something is missing.
SAYS_FIRST = ("sh", "-c", 'echo "$0" >&2; exec "$@"')
WARNING = "hwloc/linux: failed to find sysfs cpu topology directory, aborting linux discovery."


class Outcome:
    def __init__(self, program, launcher, way, settings):
        seconds = LONG
        if way.startswith(("stall everywhere", "stall in")):
            seconds = 0.5
        elif way.startswith(("stall", "wrong", "catch outside")) or way in EVERYWHERE:
            seconds = TIMEOUT
        env = dict(os.environ, CLEAVE_TIMEOUT=str(seconds), **settings)
        begin = time.monotonic()
        job = subprocess.Popen([*launcher, "-n", str(RANKS), program, way], text=True, env=env,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
        try:
            self.output, _ = job.communicate(timeout=60 * REPEAT if way in EVERYWHERE else 60)
            self.status = job.returncode
        except subprocess.TimeoutExpired:
            job.terminate()  # mpirun ends its processes
            self.output, _ = job.communicate()
            self.status = None
        self.seconds = time.monotonic() - begin

    def own(self):
        """The lines of the library and the program; MPI and hwloc may print any warnings."""
        return [line for line in self.output.splitlines() if line.startswith(OURS)]

    def reports(self, rank):
        """The lines that a rank has written to stderr."""
        return [line for line in self.output.splitlines() if line.startswith(f"rank {rank}: ")]

    def seen_by(self, rank):
        """The error that a rank has caught."""
        start = f"rank {rank} saw: "
        return [line for line in self.output.splitlines() if line.startswith(start)]

    def __str__(self):
        return f"status {self.status} after {self.seconds:.1f} s:\n{self.output[-5000:]}"


def told(outcome, text, ranks=range(LAST)):
    """Whether each of these ranks has seen exactly one error, and it contains the text."""
    return all(len(outcome.seen_by(r)) == 1 and text in outcome.seen_by(r)[0] for r in ranks)


def ended(outcome, text):
    """Whether other ranks than the last have ended the job with errors that contain the text."""
    lines = [line for r in range(LAST) for line in outcome.reports(r)]
    return bool(lines) and all(text in line for line in lines) and not outcome.reports(LAST)


def reported(outcome, report="planted"):
    """Whether the last rank, and no other one, has reported its error and ended the job."""
    return (outcome.reports(LAST) == [f"rank {LAST}: {report}"]
            and not any(outcome.reports(r) for r in range(LAST)))


def planted(outcome, report="planted"):
    """The same, and whether the others have seen it."""
    return told(outcome, f"rank {LAST} failed: {report}") and reported(outcome, report)


# way: (sentence, exit status or None for any but 0, condition). Processes share memory.
WAYS = {
    "none": ("ranks that all return end well", 0,
             lambda o: o.own() == [BEGUN]),
    "own MPI": ("MPI that the user has started stays the user's to finalise", 0,
                lambda o: o.own() == [BEGUN]),
    "leave early": ("a rank that has done its part may leave while others wait for a third", 0,
                    lambda o: o.own() == [BEGUN]),
    "code": ("the code that all ranks return is that of mpirun", 3,
             lambda o: "rank 0" not in o.output and "rank 1" not in o.output),
    "code of one": ("the code that one rank returns is that of mpirun", 3,
                    lambda o: "rank 0" not in o.output and "rank 1" not in o.output),
    "throw": ("a rank that throws reports its error, and the others are told", 1, planted),
    "throw an int": ("a rank may throw anything", 1,
                     lambda o: planted(o, "an exception that is not a std::exception")),
    "catch": ("a failure is one, even if the others catch it", 1, planted),
    "large": ("long messages under way do not keep the ranks", 1, planted),
    "subgroup": ("ranks that make a group are told who will not come", 1, planted),
    "chain": ("ranks that wait for ranks that wait are told who has failed", 1, planted),
    "throw past work": ("a rank that throws past asynchronous work tells the others", 1,
                        lambda o: told(o, f"rank {LAST} failed: {PAST_WORK}") and reported(o)),
    "all throw": ("every rank that fails by itself reports it", 1,
                  lambda o: all(len(o.reports(r)) <= 1 for r in range(RANKS))
                  and any(o.reports(r) == [f"rank {r}: planted"] for r in range(RANKS))),
    "leave": ("a rank whose function returns early is named", 1,
              lambda o: told(o, f"rank {LAST} left while rank")
              and not o.seen_by(LAST) and not o.reports(LAST)),
    "stall": ("a rank that comes too late is named, and told", 1,
              lambda o: told(o, f"rank {LAST} did not reach {GATHER} within {TIMEOUT} s")
              and told(o, f"rank {LAST} did not reach {GATHER}", [LAST])),
    "stall for ever": ("a rank that never comes is named, and ended", 1,
                       lambda o: told(o, f"rank {LAST} did not reach {GATHER}")),
    "wrong call": ("a rank whose call is wrong in itself reports it, and the others are told",
                   1, lambda o: planted(o, "all_gather: 0 pieces for 3 ranks")),
    "wrong size": ("ranks that do not fit each other are told so", 1,
                   lambda o: told(o, "the sender's view does not match the receiver's", [LAST])),
    "wrong kind": ("ranks that do not make the same call are told so", 1,
                   lambda o: told(o, "ranks of group 'world' disagree: rank 0 runs all_gather, "
                                     f"rank {LAST} runs barrier", range(RANKS))),
    "die": ("a rank that is killed ends the program", None, lambda o: BEGUN in o.output),
    "many": ("worlds fail one after the other in the same processes", 0,
             lambda o: "60 worlds failed, 0 errors were wrong" in o.output),
}

KINDS = ("barrier", "broadcast", "scatter", "gather", "all_gather", "reduce_scatter", "all_reduce",
         "all_to_all", "exchange")

# A rank calls exit inside a call; mpirun treats that as an error, whatever the exit code.
EXITS = {f"exit in {kind}": ("the others hear of a rank that calls exit", None,
                             lambda o: told(o, f"rank {LAST} failed: it has called exit"))
         for kind in KINDS}

# These programs repeat themselves, for each kind of call.
EVERYWHERE = {way: (sentence, 0, lambda o: f"{len(KINDS) * REPEAT} worlds failed, 0 errors were "
                                           "wrong" in o.output)
              for way, sentence in {
                  "throw everywhere": "a rank that throws inside any call is named in time",
                  "leave everywhere": "a rank that leaves inside any call is named in time",
                  "stall everywhere": "a rank that stalls inside any call is named in time",
              }.items()}

# Without shared memory, and between nodes.
DIFFER = ("ranks that make different calls end with an error about their group", 1,
          lambda o: any(o.reports(r) for r in range(RANKS))
          and all(" of group 'world'" in line for r in range(RANKS) for line in o.reports(r)))
LATE = f"rank {LAST} did not reach {GATHER} within {TIMEOUT} s"
ENDS = {way: WAYS[way] for way in ("none", "own MPI", "leave early", "code", "code of one",
                                      "die")} | {
    way: (WAYS[way][0], 1, reported)
    for way in ("throw", "catch", "large", "subgroup", "chain")
} | {
    "throw an int": (WAYS["throw an int"][0], 1,
                     lambda o: reported(o, "an exception that is not a std::exception")),
    "throw past work": (WAYS["throw past work"][0], 1,
                        lambda o: ended(o, f"rank {LAST} failed: {PAST_WORK}")),
    "all throw": ("a rank that fails by itself reports it, and ends the others", 1,
                  lambda o: any(o.reports(r) == [f"rank {r}: planted"] for r in range(RANKS))),
    "leave": ("a rank whose function returns early is named", 1,
              lambda o: ended(o, f"rank {LAST} left while rank")),
    "stall": ("a rank that comes too late is named", 1, lambda o: ended(o, LATE)),
    "stall for ever": ("a rank that never comes is named, and ended", 1,
                       lambda o: ended(o, LATE)),
    "wrong call": (WAYS["wrong call"][0], 1,
                   lambda o: reported(o, "all_gather: 0 pieces for 3 ranks")),
    "wrong size": DIFFER,
    "wrong kind": DIFFER,
    "catch outside": ("a rank that catches what has destroyed its communicators is named", 1,
                      lambda o: ended(o, f"rank {LAST} failed: its communicators were destroyed by "
                                         "an exception")),
    "catch outside, one thread": (
        "where only one thread may call MPI, ranks name the call and all other ranks", 1,
        lambda o: ended(o, f"{GATHER} did not end within {TIMEOUT} s, waiting for ranks ")),
} | {
    f"exit in {kind}": ("a rank that calls exit reports it, and ends the others", None,
                        lambda o: reported(o, "it has called exit")) for kind in KINDS
} | {
    f"throw in {kind}": ("a rank that throws inside any call ends the others", 1, reported)
    for kind in KINDS
} | {
    f"leave in {kind}": ("a rank that leaves inside any call is named", 1,
                         lambda o: ended(o, f"rank {LAST} left while rank")) for kind in KINDS
} | {
    f"stall in {kind}": ("a rank that stalls inside any call is named", 1,
                         lambda o: ended(o, f"rank {LAST} did not reach ")) for kind in KINDS
}

# If every call is compared first, no data moves before an error.
COMPARED = {way: WAYS[way] for way in ("throw", "leave", "stall")} | {
    "wrong size": ("ranks that disagree about sizes are told so before anything moves", 1,
                   lambda o: told(o, "ranks of group 'world' disagree: rank 0 runs all_gather of "
                                     "3000 float32", range(RANKS))),
    "wrong kind": ("ranks that disagree about the kind are told so before anything moves", 1,
                   lambda o: told(o, "ranks of group 'world' disagree: rank 0 runs all_gather",
                                  range(RANKS))),
}


def carried_by(transport):
    """Ranks know the transport of their collectives, and why it is not shared memory."""
    return {"transport": ("a rank can ask what carries its collectives", 0,
                          lambda o: len([line for line in o.output.splitlines()
                                         if line.startswith(f"mpi: {transport}")]) == RANKS)}


RUNS = (
    ("messages", {"CLEAVE_SHARED_MB": "0", "CLEAVE_CHECK": "local"}, ENDS),
    ("shared memory", {"CLEAVE_SHARED_MB": "", "CLEAVE_CHECK": "local"},
     WAYS | EXITS | EVERYWHERE | carried_by("shared memory")),
    ("compared", {"CLEAVE_SHARED_MB": "", "CLEAVE_CHECK": "collective"}, COMPARED),
    ("a little shared memory", {"CLEAVE_SHARED_MB": "8"},
     carried_by("messages, no shared memory: CLEAVE_SHARED_MB is less than 16")
     | {"throw": ENDS["throw"]}),
    ("more shared memory than there is", {"CLEAVE_SHARED_MB": "1e9"},
     carried_by("messages, no shared memory: "
                f"CLEAVE_SHARED_MB requests {RANKS} segments of 1e+09 MiB, but only ")),
    ("shared memory that is no number", {"CLEAVE_SHARED_MB": "some"},
     {"none": ("a setting that means nothing is refused on every rank", 2,
               lambda o: "CLEAVE_SHARED_MB is 'some'; use MiB >= 0" in o.output)}),
)


def main(program, mpiexec, *chosen):
    cases = Cases()
    for name, settings, ways in RUNS:
        for way, (sentence, status, holds) in ways.items():
            if chosen and way not in chosen:
                continue
            for _ in range(1 if way in EVERYWHERE else REPEAT):
                o = Outcome(program, [mpiexec], way, settings)
                ended = o.status not in (None, 0) if status is None else o.status == status
                cases.check(f"{sentence} ({way}, {name})", ended and holds(o), str(o))
    if not chosen:
        _, _, holds = WAYS["none"]
        for sentence, said, allowed in (
                ("a warning that is not the library's is no failure", WARNING, True),
                ("a planted line of the library is found", "cleave: planted", False)):
            o = Outcome(program, [*SAYS_FIRST, said, mpiexec], "none", {})
            cases.check(sentence, said in o.output and holds(o) == allowed, str(o))
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
