#!/usr/bin/env python3
"""Attention's weights, softmax(scores / 8 + mask) on 32 MiB of floats, as a program against torch's
eager calls in the same run, each on one thread.

usage: softmax_mask.py PROGRAM

Prints `spmd.softmax_mask.vs_torch`: torch's time divided by that of the program, as medians of
interleaved runs.
"""

import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import torch_steps

ROUNDS, REPEATS = 25, 4


def main():
    line = "spmd.softmax_mask.vs_torch"
    if not torch_steps.has_torch(line):
        return
    import torch
    torch.set_num_threads(1)
    scores = ((torch.arange(32 * 512 * 512) * 7919 % 8000).float() / 1000 - 4).reshape(32, 512, 512)
    mask = torch.triu(torch.full((512, 512), -torch.inf), 1)
    program = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)

    def own():
        program.stdin.write(f"{REPEATS}\n")
        program.stdin.flush()
        seconds, squares = program.stdout.readline().split()
        return float(seconds), float(squares)

    def others():
        start = time.perf_counter()
        for _ in range(REPEATS):
            y = torch.softmax(scores / 8 + mask, 2)
        seconds = (time.perf_counter() - start) / REPEATS
        return seconds, float((y.double() ** 2).sum())

    (_, ours), (_, theirs) = own(), others()
    if abs(ours - theirs) > 1e-5 * theirs:
        sys.exit(f"{line}: the results differ: {ours}, torch {theirs}")
    torch_steps.report(line, [(own(), others()) for _ in range(ROUNDS)])
    program.stdin.close()
    if program.wait() != 0:
        sys.exit("the program failed")


if __name__ == "__main__":
    main()
