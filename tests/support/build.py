#!/usr/bin/env python3
"""Builds what the tests of a suite need and records how long it took.

usage: build.py BUILD_DIR JOBS [SUITE]

SUITE is a Meson suite; `all` builds what is built by default or needed by any test. The default is
the tests outside the suite `ci`. Appends a line to BUILD_DIR/meson-logs/builds.json.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import time


def targets(build, suite):
    """The targets to build with Ninja."""
    if suite == "all":
        return ["all", "meson-test-prereq"]
    info = build / "meson-info"
    files = {target["id"]: target["filename"]
             for target in json.loads((info / "intro-targets.json").read_text())}
    needed = set()
    for test in json.loads((info / "intro-tests.json").read_text()):
        suites = [name.split(":")[-1] for name in test["suite"]]
        if suite in suites if suite else "ci" not in suites:
            needed.update(file for target in test["depends"] for file in files[target])
    return sorted(os.path.relpath(file, build) for file in needed)


def commands_since(log, size):
    """(seconds, output) of the steps that Ninja logged after `size` bytes, the slowest first."""
    if not log.exists():
        return []
    with open(log) as lines:
        lines.seek(size if size <= log.stat().st_size else 0)
        rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return sorted({((int(row[1]) - int(row[0])) / 1000, row[3]) for row in rows}, reverse=True)


def main(build, jobs, suite=""):
    build = pathlib.Path(build).resolve()
    wanted = targets(build, suite)
    if not wanted:
        return 0
    log = build / ".ninja_log"
    size = log.stat().st_size if log.exists() else 0
    begin = time.monotonic()
    status = subprocess.run(["ninja", "-C", str(build), "-j", jobs, *wanted]).returncode
    seconds = time.monotonic() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    record = {"suite": suite, "seconds": seconds, "cpu_seconds": used.ru_utime + used.ru_stime,
              "slowest": commands_since(log, size)[:3]}
    with open(build / "meson-logs" / "builds.json", "a") as records:
        records.write(json.dumps(record) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
