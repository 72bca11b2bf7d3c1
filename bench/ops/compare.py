#!/usr/bin/env python3
"""Calls on 64 MiB of floats as users write them, against NumPy and torch in the same run, all on
one thread.

usage: compare.py PROGRAM

Prints `call.NAME.vs_torch` and `call.NAME.vs_numpy`: the other library's time of a call divided by
that of the program, as medians of interleaved calls. All three create and destroy the result.
"""

import statistics
import subprocess
import sys
import time

RUNS = 9
NAMES = ["exp", "log", "tanh", "sigmoid", "gelu", "erf", "sin", "cos", "softmax", "log_softmax",
         "layer_norm", "max", "min", "max_dim", "argmax"]


def with_numpy():
    import numpy
    print(f"NumPy {numpy.__version__}", file=sys.stderr)
    x = ((numpy.arange(4096 * 4096) * 7919 % 8000).astype("f4") / 1000 - 4).reshape(4096, 4096)
    positive = abs(x) + numpy.float32(0.5)
    calls = {name: (lambda f=getattr(numpy, name): f(x)) for name in ["exp", "tanh", "sin", "cos"]}
    return calls | {"log": lambda: numpy.log(positive),
                    "max": lambda: numpy.max(x), "min": lambda: numpy.min(x),
                    "max_dim": lambda: numpy.max(x, 1), "argmax": lambda: numpy.argmax(x, 1)}


def with_torch():
    import torch
    print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}", file=sys.stderr)
    torch.set_num_threads(1)
    x = ((torch.arange(4096 * 4096) * 7919 % 8000).float() / 1000 - 4).reshape(4096, 4096)
    positive = abs(x) + 0.5
    weight, bias = torch.ones(4096), torch.zeros(4096)
    names = ["exp", "tanh", "sigmoid", "erf", "sin", "cos", "max", "min"]
    calls = {name: (lambda f=getattr(torch, name): f(x)) for name in names}
    return calls | {"log": lambda: torch.log(positive),
                    "gelu": lambda: torch.nn.functional.gelu(x),
                    "layer_norm": lambda: torch.nn.functional.layer_norm(x, (4096,), weight, bias),
                    "max_dim": lambda: torch.amax(x, 1),
                    "argmax": lambda: torch.argmax(x, 1),
                    "softmax": lambda: torch.softmax(x, 1),
                    "log_softmax": lambda: torch.log_softmax(x, 1)}


def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    others = {}
    for name, load in {"torch": with_torch, "numpy": with_numpy}.items():
        try:
            others[name] = load()
        except ImportError:
            print(f"{name} is not installed for {sys.executable}: omitting call.NAME.vs_{name} "
                  "(PYTHON=.. names another interpreter)", file=sys.stderr)
    if not others:
        return
    program = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)

    def own(name):
        program.stdin.write(name + "\n")
        program.stdin.flush()
        return float(program.stdout.readline())

    for name in NAMES:
        own(name)  # allocates the memory that later calls reuse
        times = {library: [] for library in ["own", *others]}
        for _ in range(RUNS):
            times["own"].append(own(name))
            for library, calls in others.items():
                if name in calls:
                    times[library].append(seconds_of(calls[name]))
        for library in others:
            if times[library]:
                ratio = statistics.median(times[library]) / statistics.median(times["own"])
                print(f"call.{name}.vs_{library} {ratio:.2f} ratio", flush=True)
    program.stdin.close()
    if program.wait() != 0:
        sys.exit("the program failed")


if __name__ == "__main__":
    main()
