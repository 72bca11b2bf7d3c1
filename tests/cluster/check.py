#!/usr/bin/env python3
"""Programs on hosts that share no memory: values, a cable that is unplugged, a host that stops.

usage: check.py TEST_COMM TEST_REDISTRIBUTE ENDURE CLEAVE_TUNE
"""

import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cluster as hosts
from cases import Cases

TIMEOUT = 2  # CLEAVE_TIMEOUT of the ranks that lose a host
MARGIN = 6   # seconds that ranks on a loaded machine take on top of it

# sentence, hosts, ranks on each, ranks dealt out in turn, program, cases
COLLECTIVES = "*every rank*,*exchange moves*,*order of the ranks*,*subgroup*,*all-gather puts*"
FAILURES = "*within the time-out*,*after a failure*,*wakes the others*"
VALUES = (
    ("collectives between hosts with one rank each", 3, 1, False, "comm", COLLECTIVES),
    ("collectives and failures between hosts with two ranks each", 2, 2, False, "comm",
     f"{COLLECTIVES},{FAILURES}"),
    ("collectives of ranks that are dealt out to hosts in turn", 2, 2, True, "comm", COLLECTIVES),
    ("redistributions between hosts", 2, 2, False, "redistribute", "*redistributed together*"),
)


def values(cases, programs):
    for sentence, count, ranks, by_node, program, chosen in VALUES:
        with hosts.Cluster(count) as cluster:
            code, said = cluster.run(
                ranks, [programs[program], "-tse=threads only", f"-tc={chosen}"], seconds=120,
                by_node=by_node, CLEAVE_CHECK="collective", CLEAVE_TIMEOUT="60")
        held = code == 0 and re.search(r"test cases: +[1-9]", said) is not None
        cases.check(sentence, held, f"status {code}\n{said[-4000:]}")


def wait_for(files, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not all(file.exists() for file in files):
        time.sleep(0.05)
    return all(file.exists() for file in files)


def lose_host(cases, endure, sentence, lose, survivors, count):
    """Ranks 0 and 1 are on one host, 2 and 3 on the one that is lost."""
    with hosts.Cluster(2) as cluster:
        folder = cluster.folder / "seen"
        folder.mkdir()
        job = cluster.start(2, [endure, folder, str(count)], CLEAVE_TIMEOUT=str(TIMEOUT))
        begun = wait_for([folder / f"rank{r}.begun" for r in range(4)], 60)
        lose(cluster)
        seen = [folder / f"rank{r}.saw" for r in survivors]
        ended = begun and wait_for(seen, TIMEOUT + 2 * MARGIN)
        said = {file.name: file.read_text() if file.exists() else "nothing" for file in seen}
        job.kill()
        for file in seen:
            file.unlink(missing_ok=True)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    held = ended
    for r in survivors if ended else ():
        seconds, _, text = said[f"rank{r}.saw"].partition(" ")
        lost = "[23]" if r < 2 else "[01]"
        named = re.search(rf"ranks? {lost}(, {lost})? did not come to ", text)
        held = held and named is not None and float(seconds) < TIMEOUT + MARGIN
    cases.check(sentence, held, f"begun: {begun}\n{said}")


def tuned(cases, test_comm, tune):
    with hosts.Cluster(2) as cluster:
        file = cluster.folder / "file.tune"
        code, said = cluster.run(2, [tune, file], seconds=120)
        text = file.read_text() if file.exists() else ""
        rows = re.findall(r"^\w+  [24]  0  \w+  # us:", text, re.M)
        machine = re.search(r"^inside  \S+  \S+$.*^between  \S+  \S+  2$", text, re.M | re.S)
        written = code == 0 and len(rows) == 8 and machine is not None
        cases.check("cleave-tune measures columns and all ranks", written,
                    f"status {code}\n{said[-4000:]}\n{text}")
        code, said = cluster.run(2, [test_comm, "-tse=threads only", "-tc=*exchange moves*"],
                                 seconds=120, CLEAVE_TUNE=str(file))
        cases.check("what it writes is read", code == 0, f"status {code}\n{said[-4000:]}")


def main(test_comm, test_redistribute, endure, tune):
    cases = Cases()
    reason = hosts.obstacle()
    if reason is not None:
        cases.skip("programs on several hosts", reason)
        return cases.finish()
    hosts.enclose()
    values(cases, {"comm": test_comm, "redistribute": test_redistribute})
    tuned(cases, test_comm, tune)
    for count in (10, 100_000):
        lose_host(cases, endure, f"an unplugged cable is noticed on both ends ({count} floats)",
                  lambda cluster: cluster.unplug(1), (0, 1, 2, 3), count)
        lose_host(cases, endure, f"the ranks of a host that stops are named ({count} floats)",
                  lambda cluster: cluster.halt(1), (0, 1), count)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
