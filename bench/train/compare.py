#!/usr/bin/env python3
"""A step of training of the GPT of examples/train_gpt, against the same model in PyTorch, eager, in the
same run, all with one thread.

usage: compare.py PROGRAM

Prints `train.gpt_step.vs_torch`: torch's time of a step divided by that of the program, as medians of
steps in turn. Both have the sizes that the program has by default; forward, backward, the norm of all
gradients and AdamW are in the step.
"""

import statistics
import subprocess
import sys
import time

ROUNDS, STEPS = 25, 4
CHARACTERS, BATCH, CONTEXT, WIDTH, HEADS, LAYERS = 80, 16, 64, 64, 4, 2


def torch_step():
    import torch
    from torch import nn
    print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}", file=sys.stderr)
    torch.set_num_threads(1)
    torch.manual_seed(1)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.out = [nn.Linear(WIDTH, WIDTH) for _ in range(4)]

        def forward(self, x):
            q, k, v = [f(x).unflatten(2, (HEADS, -1)).transpose(1, 2)
                       for f in (self.query, self.key, self.value)]
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).flatten(2))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention_norm, self.attention = nn.LayerNorm(WIDTH), Attention()
            self.mlp_norm = nn.LayerNorm(WIDTH)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                     nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x):
            x = x + self.attention(self.attention_norm(x))
            return x + self.mlp(self.mlp_norm(x))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(CHARACTERS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CHARACTERS)

        def forward(self, ids, where):
            return self.head(self.norm(self.blocks(self.tokens(ids) + self.places(where))))

    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    places = torch.arange(BATCH * CONTEXT)
    x = (places * 7919 % CHARACTERS).reshape(BATCH, CONTEXT)
    following = (places + 1) * 7919 % CHARACTERS
    where = torch.arange(CONTEXT)

    def step():
        loss = nn.functional.cross_entropy(model(x, where).flatten(0, 1), following)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def main():
    try:
        step = torch_step()
    except ImportError:
        print(f"torch is not installed for {sys.executable}: without train.gpt_step.vs_torch "
              "(PYTHON=.. names another interpreter)", file=sys.stderr)
        return
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
