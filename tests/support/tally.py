#!/usr/bin/env python3
"""Adds up the cases of test runs: `N passed, N failed`, with `, N skipped` if any.

usage: tally.py TESTLOG.json ..

Reads the logs of `meson test`. A test that fails without counting a failed case (a crash, a
time-out, a missing executable) counts as one failure, and so does a missing log.
"""

import json
import re
import sys

LINE = re.compile(r"^cleave-cases: (\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # other ranks may write one before that line


def counts(test):
    """[passed, failed, skipped] of one test, and a description of its error, if any."""
    lines = LINE.findall(COLOUR.sub("", test.get("stdout", "")))
    total = [sum(int(line[i]) for line in lines) for i in range(3)]
    if test["result"] == "OK" and lines and total[1] == 0:
        return total, ""
    if total[1] == 0:
        total[1] = 1
    return total, f"{test['result'].lower()}: {test['name']}"


def main(logs):
    total = [0, 0, 0]
    for log in logs:
        try:
            with open(log) as lines:
                tests = [json.loads(line) for line in lines]
        except OSError:
            tests = []
        if not tests:
            print(f"no test ran: {log} (did the build fail?)")
            total[1] += 1
        for test in tests:
            seen, wrong = counts(test)
            total = [a + b for a, b in zip(total, seen)]
            if wrong:
                print(wrong)
    passed, failed, skipped = total
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
