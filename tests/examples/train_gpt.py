#!/usr/bin/env python3
"""examples/train_gpt learns from a text, with the same losses and the same writing on every mesh,
threads or processes, goes on from a checkpoint on another mesh, and refuses bad input in one line.

usage: train_gpt.py PROGRAM [MPIEXEC]
"""

import pathlib
import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from programs import check_refusals, run

LINE = re.compile(r"^step +(\d+)  loss (\d+\.\d+)", re.MULTILINE)
SMALL = ["--steps", 60, "--every", 10, "--save", 20, "--batch", 4, "--context", 32, "--width", 32,
         "--sample", 40]
TEXT = "the quick brown fox jumps over the lazy dog; pack my box with five dozen liquor jugs.\n"


def losses_of(done):
    return [(int(step), float(loss)) for step, loss in LINE.findall(done.stdout)]


def traffic_of(done):
    """KiB per step of each line of progress. Speed and share of time vary with the machine's load."""
    return [int(kib) for kib in re.findall(r" \d+ tokens/s  communication \d+ %, (\d+) KiB a step", done.stdout)]


def alike(found, expected):
    return len(found) == len(expected) and all(
        a[0] == b[0] and abs(a[1] - b[1]) <= 0.0021 for a, b in zip(found, expected))


def main(program, mpiexec=None):
    cases = Cases()
    scratch = pathlib.Path(tempfile.mkdtemp())
    text = scratch / "text"
    text.write_text(TEXT * 40)
    words = ["--text", text, *SMALL]
    curve = scratch / "loss.svg"
    one = run(program, *words, "--ranks", 1, "--curve", curve)
    expected = losses_of(one)
    cases.check("the loss falls by more than a third", one.returncode == 0 and len(expected) == 6
                and expected[-1][1] < 0.66 * expected[0][1], one.stdout)
    cases.check("progress tells speed and the share of communication: one rank sends nothing",
                traffic_of(one) == [0] * 6, one.stdout)
    picture = xml.etree.ElementTree.parse(curve).getroot()
    line = picture.find("{http://www.w3.org/2000/svg}polyline").get("points").split()
    heights = [float(point.split(",")[1]) for point in line]
    cases.check("the curve of losses is a picture: it falls as they do, from left to right",
                len(line) == 6 and max(heights) == heights[-1]
                and sorted(line, key=lambda point: float(point.split(",")[0])) == line, str(line))
    cases.check("some text is written, which begins as the text does",
                "----\n" + TEXT[:32] in one.stdout and one.stdout.count("----\n") == 2, one.stdout)
    for ranks, mesh in [(2, "dp=2"), (2, "tp=2"), (4, "dp=2,tp=2")]:
        done = run(program, *words, "--ranks", ranks, "--mesh", mesh)
        cases.check(f"threads, {mesh}: the losses of one rank, and ranks that send",
                    done.returncode == 0 and alike(losses_of(done), expected)
                    and len(traffic_of(done)) == 6 and min(traffic_of(done)) > 0, done.stdout)
    if mpiexec:
        done = run(mpiexec, "-n", 4, program, *words, "--mesh", "dp=2,tp=2")
        cases.check("processes, dp=2,tp=2: the losses of one rank",
                    done.returncode == 0 and alike(losses_of(done), expected), done.stdout)
    sharded = [*words, "--mesh", "dp=2,tp=2", "--sharded"]
    done = run(program, *sharded, "--ranks", 4)
    cases.check("threads, dp=2,tp=2, sharded: the losses of one rank, and some text is written",
                done.returncode == 0 and alike(losses_of(done), expected)
                and done.stdout.count("----\n") == 2, done.stdout)
    if mpiexec:
        done = run(mpiexec, "-n", 4, program, *sharded, "--resume", scratch / "shards")
        cases.check("processes, dp=2,tp=2, sharded: the losses of one rank",
                    done.returncode == 0 and alike(losses_of(done), expected), done.stdout)
    else:
        run(program, *sharded, "--ranks", 4, "--resume", scratch / "shards")
    for number in 40, 60:
        shutil.rmtree(scratch / f"shards/step-{number}", ignore_errors=True)
    again = run(program, *words, "--ranks", 2, "--mesh", "dp=2", "--sharded", "--resume",
                scratch / "shards")
    cases.check("sharded over another mesh it goes on from step 20", "resuming from" in again.stdout
                and alike(losses_of(again), expected[2:]), again.stdout)
    several = [mpiexec, "-n", 2, program] if mpiexec else [program, "--ranks", 2]
    first = run(*several, *words, "--mesh", "dp=2", "--resume", scratch / "saved")
    cases.check("saving changes nothing", alike(losses_of(first), expected), first.stdout)
    shutil.rmtree(scratch / "saved/step-60", ignore_errors=True)
    shutil.rmtree(scratch / "saved/step-40", ignore_errors=True)
    again = run(program, *words, "--ranks", 2, "--mesh", "tp=2", "--resume", scratch / "saved")
    cases.check("another mesh goes on from step 20", "resuming from" in again.stdout
                and alike(losses_of(again), expected[2:]), again.stdout)
    shutil.rmtree(scratch)
    check_refusals(cases, program, [
        (["--mesh", "2x2"], "must be extents by name"),
        (["--heads", "3"], "--width 64 is not a multiple of --heads 3"),
        (["--mesh", "tp=3"], "--heads 4 is not a multiple of tp=3"),
        (["--text", scratch], "--text requires a file of more than 64 characters"),
        (["--curve", scratch / "none/loss.svg"], "loss.svg cannot be written"),
        (["--color", "1"], "unknown option '--color'"),
    ])
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
