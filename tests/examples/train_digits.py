#!/usr/bin/env python3
"""examples/train_digits learns to read digits, with the same losses on every mesh, threads or
processes, goes on from a checkpoint on another mesh, and refuses bad input in one line.

usage: train_digits.py PROGRAM DATA_FOLDER [MPIEXEC]
"""

import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from programs import check_refusals, run

LINE = re.compile(r"^epoch +(\d+)  loss (\d+\.\d+)  held out +(\d+\.\d+) %", re.MULTILINE)


def epochs_of(done):
    return [(int(epoch), float(loss), float(share)) for epoch, loss, share in LINE.findall(done.stdout)]


def alike(found, expected):
    return len(found) == len(expected) and all(
        a[0] == b[0] and abs(a[1] - b[1]) <= 0.0011 and abs(a[2] - b[2]) < 0.7
        for a, b in zip(found, expected))


def main(program, data, mpiexec=None):
    cases = Cases()
    scratch = pathlib.Path(tempfile.mkdtemp())
    one = run(program, "--data", data, "--ranks", 1, "--curve", scratch / "loss.svg")
    expected = epochs_of(one)
    cases.check("97 % of the digits that were held out are read right",
                one.returncode == 0 and len(expected) == 40 and expected[-1][2] >= 97, one.stdout)
    for ranks, mesh in [(2, "dp=2"), (2, "tp=2"), (3, "tp=3"), (4, "dp=2,tp=2")]:
        done = run(program, "--data", data, "--ranks", ranks, "--mesh", mesh)
        cases.check(f"threads, {mesh}: the losses of one rank",
                    done.returncode == 0 and alike(epochs_of(done), expected), done.stdout)
    cases.check("the losses are drawn", (scratch / "loss.svg").read_text().count(",") == 40,
                one.stdout)
    several = [mpiexec, "-n", 4, program] if mpiexec else [program, "--ranks", 4]
    first = run(*several, "--data", data, "--mesh", "dp=2,tp=2", "--checkpoints", scratch)
    cases.check("saving changes nothing", alike(epochs_of(first), expected), first.stdout)
    for epoch in (20, 30, 40):
        shutil.rmtree(scratch / f"epoch-{epoch}", ignore_errors=True)
    again = run(program, "--data", data, "--ranks", 3, "--checkpoints", scratch)
    cases.check("three ranks go on where four have stopped", "resuming from" in again.stdout
                and alike(epochs_of(again), expected[10:]), again.stdout)
    shutil.rmtree(scratch)
    filters = ["--data", data, "--model", "cnn", "--epochs", 20]
    one = run(program, *filters, "--ranks", 1)
    expected = epochs_of(one)
    cases.check("a convolutional network reads 97 % right, too",
                one.returncode == 0 and len(expected) == 20 and expected[-1][2] >= 97, one.stdout)
    done = run(program, *filters, "--ranks", 4, "--mesh", "dp=2,tp=2")
    cases.check("threads, dp=2,tp=2: its losses of one rank", alike(epochs_of(done), expected),
                done.stdout)
    check_refusals(cases, program, [
        (["--mesh", "2x2"], "must be extents by name"),
        (["--epochs", "no"], "must be an integer"),
        (["--model", "rnn"], "unknown model 'rnn'"),
        (["--exact", "maybe"], "--exact is 'maybe'; it must be yes or no"),
        (["--exact", "yes", "--model", "cnn"], "--exact yes is for --model mlp"),
        (["--color", "1"], "unknown option '--color'"),
    ])
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
