#!/usr/bin/env python3
"""A step of training of the GPT of examples/train_gpt, against the same model in PyTorch, eager, in the
same run, all with one thread.

usage: compare.py PROGRAM

Prints `train.gpt_step.vs_torch`: torch's time of a step divided by that of the program, as medians of
steps in turn.
"""

import statistics
import subprocess
import sys
import time

import gpt_torch

ROUNDS, STEPS = 25, 4


def main():
    try:
        import torch
    except ImportError:
        print(f"torch is not installed for {sys.executable}: without train.gpt_step.vs_torch "
              "(PYTHON=.. names another interpreter)", file=sys.stderr)
        return
    print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}", file=sys.stderr)
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
    losses = [last for _, last in found[-1]]
    if max(losses) > 1:
        sys.exit(f"the losses do not fall: {losses}")
    ours, theirs = [statistics.median(pair[who][0] for pair in found) for who in (0, 1)]
    print(f"{1e3 * ours:.2f} ms, torch {1e3 * theirs:.2f} ms", file=sys.stderr)
    print(f"train.gpt_step.vs_torch {theirs / ours:.2f} ratio")
    program.stdin.close()
    if program.wait() != 0:
        sys.exit("the program failed")


if __name__ == "__main__":
    main()
