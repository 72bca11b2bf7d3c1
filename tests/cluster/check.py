#!/usr/bin/env python3
"""Programs on hosts that share no memory: values, with and without a delay between hosts; an
unplugged cable; a host that stops.

usage: check.py TEST_COMM TEST_REDISTRIBUTE ENDURE
"""

import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cluster as hosts
from cases import Cases

PROBE = pathlib.Path(__file__).resolve().parent / "probe.py"
TIMEOUT = 2  # CLEAVE_TIMEOUT of the ranks that lose a host
MARGIN = 12  # additional seconds that ranks on a loaded machine may take

# sentence, hosts, ranks per host, ranks assigned round-robin, delay in ms, congestion control (None:
# this machine's), program, cases
COLLECTIVES = "*every rank*,*exchange moves*,*order of the ranks*,*subgroup*,*all-gather puts*"
VALUES = (
    ("collectives between hosts with one rank each", 3, 1, False, 0, None, "comm", COLLECTIVES),
    ("collectives between hosts with two ranks each", 2, 2, False, 0, None, "comm",
     COLLECTIVES),
    ("collectives of ranks that are dealt out to hosts in turn", 2, 2, True, 0, None, "comm",
     COLLECTIVES),
    ("collectives between hosts whose TCP does not pace", 2, 1, False, 0, "reno", "comm",
     COLLECTIVES),
    ("redistributions between hosts", 2, 2, False, 0, None, "redistribute",
     "*redistributed together*"),
    ("collectives between distant hosts with one rank each", 3, 1, False, 0.5, None, "comm",
     COLLECTIVES),
    ("collectives between distant hosts with two ranks each", 2, 2, False, 0.5, None,
     "comm", COLLECTIVES),
    ("redistributions between distant hosts", 2, 2, False, 0.5, None, "redistribute",
     "*redistributed together*"),
)


def cables(cases):
    """A cable's delay and rate, which the other checks rely on. Taking longer is not an error: the
    machine may be loaded."""
    with hosts.Cluster(2, delay_ms=5, mbit=100) as cluster:
        address, by = cluster.address(1), f"by {cluster.delayed_by}"
        code, said = hosts.output_of(*cluster.on(0, [sys.executable, PROBE, "trip", address]))
        held = code == 0 and 2 * 5 <= float(said) < 500
        cases.check("packets take the delay of the cable both ways", held, f"{by}: {said}")
        taker = subprocess.Popen(cluster.on(1, [sys.executable, PROBE, "take"]), text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        taker.stdout.readline()
        code, said = hosts.output_of(*cluster.on(0, [sys.executable, PROBE, "give", address,
                                                     str(10**6)]))
        held = code == 0 and 80 <= float(said) < 5000
        cases.check("a megabyte takes as long as the rate of the cable allows", held,
                    f"{by}: {said}")
        taker.kill()
        taker.wait()


def values(cases, programs):
    for sentence, count, ranks, by_node, delay, congestion, program, chosen in VALUES:
        with hosts.Cluster(count, delay, congestion=congestion) as cluster:
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


@contextlib.contextmanager
def enduring(cluster, endure, count, **settings):
    """Four communicating ranks, 0 and 1 on one host, 2 and 3 on the other. Yields the folder that
    they write their reports to, and whether all have begun."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=cluster.folder))
    job = cluster.start(2, [endure, folder, str(count)], **settings)
    try:
        yield folder, wait_for([folder / f"rank{r}.begun" for r in range(4)], 60)
    finally:
        job.kill()


def is_running(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def lose_host(cases, endure, sentence, lose, hosts_left, count, delay):
    """Loses the host of ranks 2 and 3. The ranks of each remaining host have to end, and one of
    them has to name a rank of the other host."""
    with hosts.Cluster(2, delay) as cluster, \
         enduring(cluster, endure, count, CLEAVE_TIMEOUT=str(TIMEOUT)) as (folder, begun):
        ranks = [r for host in hosts_left for r in (2 * host, 2 * host + 1)]
        processes = {r: (folder / f"rank{r}.begun").read_text().split()[0] if begun else None
                     for r in ranks}
        lose(cluster)
        end = time.monotonic() + TIMEOUT + MARGIN
        while any(map(is_running, processes.values())) and time.monotonic() < end:
            time.sleep(0.05)
        left = [r for r in ranks if is_running(processes[r])]
        said = {r: (folder / f"rank{r}.said").read_text() for r in ranks} if begun else {}
    held = begun and not left
    for host in hosts_left if begun else ():
        lost = "[23]" if host == 0 else "[01]"
        named = rf"^rank .*: ranks? {lost}(, {lost})? did not reach .* within .*; rank {lost} " \
                "does not answer"
        held = held and re.search(named, said[2 * host] + said[2 * host + 1], re.M) is not None
    cases.check(sentence, held, f"begun: {begun}, not ended: {left}\n{said}")


def measured(cases, endure):
    delay = 5
    with hosts.Cluster(2, delay) as cluster, \
         enduring(cluster, endure, 10, CLEAVE_TUNE="measure") as (folder, begun):
        said = {(folder / f"rank{r}.begun").read_text().partition(" ")[2] for r in range(4)
                if begun}
    costs = re.fullmatch(r"inside (\S+) \S+ between (\S+) \S+ 2", said.pop() if said else "")
    held = costs is not None and not said
    held = held and float(costs[1]) < 1e3 * delay <= float(costs[2])
    cases.check("ranks measure what a cable costs, and agree", held, f"{costs} {said}")


def main(test_comm, test_redistribute, endure):
    cases = Cases()
    reason = hosts.obstacle()
    if reason is not None:
        cases.skip("programs on several hosts", reason)
        return cases.finish()
    hosts.enclose()
    cables(cases)
    values(cases, {"comm": test_comm, "redistribute": test_redistribute})
    measured(cases, endure)
    for count, delay in ((10, 0), (100_000, 0), (100_000, 0.5)):
        what = f"({count} floats, {delay} ms)"
        lose_host(cases, endure, f"an unplugged cable is noticed on both ends {what}",
                  lambda cluster: cluster.unplug(1), (0, 1), count, delay)
        lose_host(cases, endure, f"the ranks of a host that stops are named {what}",
                  lambda cluster: cluster.halt(1), (0,), count, delay)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
