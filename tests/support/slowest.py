#!/usr/bin/env python3
"""Prints the slowest steps of the builds and tests in some build directories.

usage: slowest.py COUNT BUILD_DIR ..
       slowest.py reference             (only the speed of the machine, in milliseconds)

A step is a build or a test. Builds come from meson-logs/builds.json, which build.py writes; tests
come from the logs of `meson test`. Seconds are wall-clock time; for a build, the processor time and
its slowest commands are printed too. Machines differ: the time that g++ needs for some headers of
the standard library tells how fast this one is.
"""

import json
import pathlib
import resource
import subprocess
import sys

# Times measured on other machines and days are relative to these headers: do not change them.
STANDARD_HEADERS = """algorithm array atomic bit complex condition_variable concepts exception fstream
limits memory mutex new numeric span string thread tuple utility vector""".split()


def reference(runs=3):
    """Processor seconds of g++ -O0 for a file including these headers; the minimum of some runs."""
    source = "".join(f"#include <{header}>\n" for header in STANDARD_HEADERS)
    seconds = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(["g++", "-std=c++20", "-O0", "-x", "c++", "-", "-c", "-o", "/dev/null"],
                       input=source, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds)


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def steps(build):
    """(seconds, description) of every step in a build directory."""
    logs = build / "meson-logs"
    for done in records(logs / "builds.json"):
        suite = {"": "", "all": " of everything"}.get(done["suite"],
                                                      f" for the suite {done['suite']}")
        longest = ", ".join(f"{pathlib.Path(output).parent.name.removesuffix('.p') or output} "
                            f"{seconds:.0f}" for seconds, output in done["slowest"])
        yield done["seconds"], (f"{build.name}: build{suite} (processors {done['cpu_seconds']:.0f} s"
                                + (f"; {longest}" if longest else "") + ")")
    for log in sorted(logs.glob("testlog*.json")):
        for test in records(log):
            yield test["duration"], f"{build.name}: {test['name'].split(' / ')[-1]}"


def main(count, builds):
    slowest = sorted((step for build in builds for step in steps(pathlib.Path(build))), reverse=True)
    print(f"the {count} slowest steps, in seconds, where the standard headers take g++ "
          f"{reference():.2f} s:")
    for seconds, description in slowest[:count]:
        print(f"{seconds:7.1f}  {description}")


if __name__ == "__main__":
    if sys.argv[1] == "reference":
        print(round(1000 * reference()))
    else:
        main(int(sys.argv[1]), sys.argv[2:])
