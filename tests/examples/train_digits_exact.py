#!/usr/bin/env python3
"""With exact sums examples/train_digits has the same losses on every mesh, threads or processes, bit
by bit.

usage: train_digits_exact.py PROGRAM DATA_FOLDER [MPIEXEC]
"""

import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from programs import run


def main(program, data, mpiexec=None):
    cases = Cases()
    scratch = pathlib.Path(tempfile.mkdtemp())

    def bits(exact, mesh, *launch):
        losses = scratch / "losses"
        losses.unlink(missing_ok=True)
        done = run(*launch, "--data", data, "--mesh", mesh, "--epochs", 3, "--batch", 50,
                   "--hidden", 24, "--exact", exact, "--losses", losses)
        return losses.read_text().split() if done.returncode == 0 else [done.stderr]

    expected = bits("yes", "dp=1", program, "--ranks", 1)
    cases.check("losses are written to the last bit", len(expected) == 90 and all(
        loss.startswith("0x") for loss in expected) and len(set(expected)) > 80, str(expected[:3]))
    cases.check("exact sums learn", float.fromhex(expected[-1]) < 0.7 * float.fromhex(expected[0]))
    rounded = bits("no", "dp=1", program, "--ranks", 1)
    cases.check("they are the losses of rounded sums, but for rounding", all(
        abs(float.fromhex(a) - float.fromhex(b)) < 1e-3 for a, b in zip(expected, rounded))
        and rounded != expected)
    for ranks, mesh in [(2, "dp=2"), (2, "tp=2"), (3, "dp=3"), (4, "dp=2,tp=2")]:
        found = bits("yes", mesh, program, "--ranks", ranks)
        cases.check(f"threads, {mesh}, exact: every bit of the losses of one rank", found == expected,
                    str(found[:3]))
    cases.check("rounded sums differ on another mesh: the bits tell",
                bits("no", "dp=2,tp=2", program, "--ranks", 4) != rounded)
    if mpiexec:
        found = bits("yes", "dp=2,tp=2", mpiexec, "-n", 4, program)
        cases.check("processes, dp=2,tp=2, exact: every bit of the losses of one rank",
                    found == expected, str(found[:3]))
    shutil.rmtree(scratch)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
