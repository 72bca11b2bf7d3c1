#!/usr/bin/env python3
"""examples/train_gpt is killed at random moments, even while it writes a checkpoint, and resumes
from the latest one: at most the steps since then are lost, and the results equal those of a run
that was not killed.

usage: train_gpt_killed.py PROGRAM [MPIEXEC]      (CLEAVE_KILLS=50: number of kills; default 6)

Every third kill is of one of two processes under MPIEXEC, the others of a process with two threads.
"""

import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

SEED = 17
STEPS, SAVE = 60, 4
SMALL = ["--steps", STEPS, "--every", 1, "--save", SAVE, "--batch", 4, "--context", 32,
         "--width", 32, "--sample", 1, "--mesh", "dp=2"]
LINE = re.compile(r"^step +(\d+)  loss (\d+\.\d{4})", re.MULTILINE)
BEGAN = re.compile(r"^resuming from .*/step-(\d+)\n", re.MULTILINE)


class Program:
    def __init__(self, program, mpiexec, scratch):
        self.program, self.mpiexec = program, mpiexec
        self.text = scratch / "text"
        self.text.write_text("the quick brown fox jumps over the lazy dog, and goes on.\n" * 40)
        self.log = scratch / "log"

    def start(self, directory, processes=False):
        several = [self.mpiexec, "-n", 2, self.program] if processes else [self.program, "--ranks", 2]
        words = [*several, "--text", self.text, "--resume", directory, *SMALL]
        with open(self.log, "w") as log:
            return subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=subprocess.STDOUT)

    def ranks(self, launched):
        """The processes that the launcher has started."""
        found = []
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines()
                             if ":\t" in line)
            except OSError:
                continue
            if lines.get("PPid") == str(launched.pid) and lines["Name"] == self.program_name():
                found.append(int(status.parent.name))
        return sorted(found)

    def program_name(self):
        return pathlib.Path(self.program).name[:15]

    def kill(self, launched, random_numbers):
        """Kills the process, or one of several; the launcher then ends the others."""
        try:
            ranks = self.ranks(launched) if launched.args[0] == str(self.mpiexec) else []
            os.kill(random_numbers.choice(ranks) if ranks else launched.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        launched.wait(timeout=120)

    def output(self):
        return self.log.read_text()


def files_of(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def number_of(checkpoint):
    return int(checkpoint.name.removeprefix("step-"))


def complete_in(directory):
    return sorted((path for path in directory.glob("step-*") if path.suffix != ".partial"),
                  key=number_of)


def is_writing(directory):
    return any(directory.glob("*.partial"))


def wait_until(moment, launched, directory, for_writing, delay):
    """Waits until `moment`; if `for_writing`, also for a checkpoint being written, plus `delay`."""
    while time.monotonic() < moment and launched.poll() is None:
        time.sleep(0.001)
    while for_writing and launched.poll() is None and not is_writing(directory):
        pass
    if for_writing:
        time.sleep(delay)


def main(program, mpiexec=None):
    cases = Cases()
    scratch = pathlib.Path(tempfile.mkdtemp())
    numbers = random.Random(SEED)
    kills = int(os.environ.get("CLEAVE_KILLS", "6"))
    runs = Program(program, mpiexec, scratch)
    whole = scratch / "whole"
    started = time.monotonic()
    runs.start(whole).wait(timeout=300)
    lasts = time.monotonic() - started
    losses = dict(LINE.findall(runs.output()))
    cases.check("a run that is not killed writes all checkpoints", len(losses) == STEPS and
                [number_of(path) for path in complete_in(whole)] == list(range(SAVE, STEPS + 1, SAVE)),
                runs.output())
    expected = {path.name: files_of(path) for path in complete_in(whole)}

    directory, expected_begin = scratch / "killed", 0
    in_writing = resumed = done = tries = 0
    while done < kills and tries < 10 * kills:
        tries += 1
        processes = mpiexec is not None and tries % 3 == 0
        launched = runs.start(directory, processes)
        moment = time.monotonic() + numbers.uniform(0, lasts)
        wait_until(moment, launched, directory, tries % 2 == 0, numbers.uniform(0, 0.002))
        ended = launched.poll() is not None
        if not ended:
            runs.kill(launched, numbers)
            done += 1
        else:
            cases.check("a run that was not killed ends well", launched.returncode == 0, runs.output())
        output = runs.output()
        found = LINE.findall(output)
        begin = BEGAN.search(output)
        if begin or found:
            cases.check("a run goes on from the latest checkpoint",
                        int(begin[1] if begin else 0) == expected_begin, output)
            resumed += expected_begin > 0
        if found:
            cases.check("the first step is the one after the checkpoint, with no step left out",
                        [int(step) for step, _ in found] ==
                        list(range(expected_begin + 1, expected_begin + 1 + len(found))), output)
            cases.check("losses are those of the run that was not killed",
                        all(losses[step] == loss for step, loss in found), output)
        checkpoints = complete_in(directory) if directory.exists() else []
        latest = number_of(checkpoints[-1]) if checkpoints else 0
        reached = int(found[-1][0]) if found else expected_begin
        cases.check("at most the steps since the last checkpoint are lost",
                    latest >= reached - reached % SAVE, f"{output}\n{checkpoints}")
        for path in checkpoints:
            cases.check("a checkpoint has the bytes of the run that was not killed",
                        files_of(path) == expected[path.name], str(path))
        in_writing += directory.exists() and is_writing(directory)
        expected_begin = latest
        if latest == STEPS:
            shutil.rmtree(directory)
            expected_begin = 0
    print(f"{done} kills, {in_writing} while a checkpoint was being written, {resumed} runs went on")
    cases.check("so many kills", done == kills)
    cases.check("some runs go on from a checkpoint", resumed > 0)
    cases.check("some kills are while a checkpoint is being written", in_writing > 0)
    runs.start(directory).wait(timeout=300)
    cases.check("the last run ends where the one that was not killed does",
                files_of(directory / f"step-{STEPS}") == expected[f"step-{STEPS}"], runs.output())
    shutil.rmtree(scratch)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
