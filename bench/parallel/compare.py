#!/usr/bin/env python3
"""Training steps on two processes against PyTorch (gloo), with the same model in the same run:
gradients summed in buckets against DistributedDataParallel, sharded parameters against FSDP2's
fully_shard.

usage: compare.py PROGRAM

Prints `ddp_step.vs_torch_ddp` and `fsdp_step.vs_torch_fsdp2`: torch's time of a step divided by
that of the program, as medians of interleaved launches. The program is launched by mpirun.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import time

BENCH = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BENCH), str(BENCH / "train")]
import gpt_torch
import torch_steps

RANKS, TURNS, STEPS = 2, 5, 40


def torch_rank(what, rank):
    """Runs one of torch's processes."""
    import torch
    import torch.distributed as dist
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ["BENCH_PORT"]}
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)

    def wrap(model):
        if what == "ddp":
            return torch.nn.parallel.DistributedDataParallel(model)
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (RANKS,))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    step = gpt_torch.make_step(rank, RANKS, wrap)
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        loss = step()
        times.append(time.perf_counter() - start)
    if rank == 0:
        print(statistics.median(times), loss)
    dist.destroy_process_group()


def torch_step(what, turn):
    env = os.environ | {"BENCH_PORT": str(29400 + turn)}
    command = [sys.executable, __file__, "--rank", what]
    ranks = [subprocess.Popen([*command, str(rank)], env=env, stdout=subprocess.PIPE, text=True)
             for rank in range(RANKS)]
    lines = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode != 0 for rank in ranks):
        sys.exit(f"torch's {what} failed")
    return [float(word) for word in lines[0].split()]


def own_step(program, what):
    command = ["mpirun", "-n", str(RANKS), program, what, str(STEPS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def main(program):
    lines = {"ddp": "ddp_step.vs_torch_ddp", "fsdp": "fsdp_step.vs_torch_fsdp2"}
    if not torch_steps.has_torch(" and ".join(lines.values())):
        return
    for number, (what, line) in enumerate(lines.items()):
        found = [(own_step(program, what), torch_step(what, 100 * number + turn))
                 for turn in range(TURNS)]
        torch_steps.report(line, found, 2)


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        torch_rank(sys.argv[2], int(sys.argv[3]))
    else:
        main(sys.argv[1])
