"""Shared by the benchmarks of training steps against PyTorch."""

import statistics
import sys


def has_torch(lines):
    """Whether this interpreter has torch; if not, prints a message.

    lines: the names of the lines that are then omitted
    """
    try:
        import torch
    except ImportError:
        print(f"torch is not installed for {sys.executable}: omitting {lines} "
              "(PYTHON=.. names another interpreter)", file=sys.stderr)
        return False
    print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}", file=sys.stderr)
    return True


def report(line, found, largest_loss=None):
    """Prints torch's time of a step divided by that of the program, as medians.

    found: a pair (program, torch) of (seconds, last loss) for each turn
    largest_loss: of the last turn; None: the second members of `found` are not losses
    """
    losses = [loss for _, loss in found[-1]]
    if largest_loss is not None and not max(losses) <= largest_loss:
        sys.exit(f"{line}: the losses do not fall: {losses}")
    ours, theirs = [statistics.median(pair[who][0] for pair in found) for who in (0, 1)]
    print(f"{line}: {1e3 * ours:.2f} ms, torch {1e3 * theirs:.2f} ms", file=sys.stderr)
    print(f"{line} {theirs / ours:.2f} ratio", flush=True)
