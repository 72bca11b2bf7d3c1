#!/usr/bin/env python3
"""A training step of the GPT of examples/train_gpt, against the same model in PyTorch, eager, in
the same run, each on one thread.

usage: compare.py PROGRAM

Prints `train.gpt_step.vs_torch`: torch's time of a step divided by that of the program, as medians
of interleaved steps.
"""

import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import gpt_torch
import torch_steps

ROUNDS, STEPS = 25, 4


def main():
    line = "train.gpt_step.vs_torch"
    if not torch_steps.has_torch(line):
        return
    step = gpt_torch.make_step()
    program = subprocess.Popen([sys.argv[1], "gpt"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)

    def own():
        program.stdin.write(f"{STEPS}\n")
        program.stdin.flush()
        seconds, loss = program.stdout.readline().split()
        return float(seconds), float(loss)

    def others():
        start = time.perf_counter()
        loss = [step() for _ in range(STEPS)][-1]
        return (time.perf_counter() - start) / STEPS, loss

    own(), others()
    found = [(own(), others()) for _ in range(ROUNDS)]
    torch_steps.report(line, found, 1)
    program.stdin.close()
    if program.wait() != 0:
        sys.exit("the program failed")


if __name__ == "__main__":
    main()
