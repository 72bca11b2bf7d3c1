#!/usr/bin/env python3
"""Writes PyTorch's values for layers, optimizers and schedules, for layers for sequences, and for
layers for images.

usage: nn_torch.py layers > tests/nn/torch_values.hpp        (needs torch; made with 2.15.0)
       nn_torch.py sequences > tests/nn/torch_sequences.hpp
       nn_torch.py images > tests/nn/torch_images.hpp
"""

import sys

import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
values = []


def keep(name, *tensors):
    numbers = [n for t in tensors for n in t.detach().reshape(-1).tolist()]
    lines = [", ".join(f"{n!r}" for n in numbers[i:i + 4]) for i in range(0, len(numbers), 4)]
    text = ",\n    ".join(lines)
    values.append(f"inline const std::vector<double> {name}{{\n    {text}}};\n")


def layer(name, module, x, arranged=list):
    """Parameters, result, and the gradients of sum(y * y) in parameters and input."""
    if x.is_floating_point():
        x = x.clone().requires_grad_()
    y = module(x)
    (y * y).sum().backward()
    parameters = list(module.parameters())
    keep(f"{name}_parameters", *arranged(parameters))
    keep(f"{name}_result", y)
    keep(f"{name}_gradients", *arranged([p.grad for p in parameters]))
    if x.is_floating_point():
        keep(f"{name}_input_gradient", x.grad)


def noisy(module):
    for p in module.parameters():
        torch.nn.init.normal_(p)
    return module


def trajectory(name, make, schedule=None):
    """Parameters [3, 4] and [5] after 6 steps with stored gradients."""
    w, b = torch.nn.Parameter(start[0].clone()), torch.nn.Parameter(start[1].clone())
    optimizer = make([w, b])
    for step in range(6):
        w.grad, b.grad = gradients[step][0].clone(), gradients[step][1].clone()
        optimizer.step()
    keep(name, w, b)


def rates(name, make, steps=12):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    schedule = make(optimizer)
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    keep(name, torch.tensor(found))


x = torch.randn(6, 4)
keep("layer_input", x)
layer("linear", noisy(torch.nn.Linear(4, 3)), x)
layer("mlp", noisy(torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(),
                                       torch.nn.Linear(5, 3))), x)
layer("layer_norm", noisy(torch.nn.LayerNorm(4, eps=1e-5)), x)
layer("rms_norm", noisy(torch.nn.RMSNorm(4, eps=1e-6)), x)

start = [torch.randn(3, 4), torch.randn(5)]
gradients = [[torch.randn(3, 4), torch.randn(5)] for _ in range(6)]
keep("start", *start)
keep("stored_gradients", *[t for pair in gradients for t in pair])
optim = torch.optim
trajectory("sgd", lambda p: optim.SGD(p, lr=0.1, weight_decay=0.01))
trajectory("momentum", lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2,
                                           weight_decay=0.01))
trajectory("nesterov", lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True))
trajectory("adam", lambda p: optim.Adam(p, lr=0.02, betas=(0.8, 0.99), eps=1e-6,
                                        weight_decay=0.1))
trajectory("adamw", lambda p: optim.AdamW(p, lr=0.02, betas=(0.8, 0.99), eps=1e-6,
                                          weight_decay=0.1))

w, b = torch.nn.Parameter(start[0].clone()), torch.nn.Parameter(start[1].clone())
for bound in [0.5, 1e6]:
    w.grad, b.grad = gradients[0][0].clone(), gradients[0][1].clone()
    norm = torch.nn.utils.clip_grad_norm_([w, b], bound)
    keep("clipped" if bound < 1 else "unclipped", norm, w.grad, b.grad)

schedulers = optim.lr_scheduler
rates("step_rates", lambda o: schedulers.StepLR(o, step_size=3, gamma=0.5))
rates("cosine_rates", lambda o: schedulers.CosineAnnealingLR(o, T_max=10, eta_min=0.05))
rates("warm_up_rates", lambda o: schedulers.LinearLR(o, start_factor=0.1, total_iters=4))



def causal(length):
    return torch.nn.Transformer.generate_square_subsequent_mask(length)


class Attention(torch.nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x, need_weights=False, attn_mask=causal(x.shape[1]))[0]


class GroupedAttention(torch.nn.Module):
    """Four heads of queries, two of keys and values; every position attends to all."""

    def __init__(self):
        super().__init__()
        self.query, self.key = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)
        self.value, self.out = torch.nn.Linear(4, 2), torch.nn.Linear(4, 4)

    def forward(self, x):
        q, k, v = [f(x).unflatten(2, (-1, 1)).transpose(1, 2)
                   for f in (self.query, self.key, self.value)]
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return self.out(y.transpose(1, 2).flatten(2))


class RotaryAttention(torch.nn.Module):
    """One head of four numbers, rotated as pairs of complex numbers: RoFormer, equation 34."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = [torch.nn.Linear(4, 4) for _ in range(4)]

    def forward(self, x):
        angles = torch.outer(torch.arange(x.shape[1]), 10000 ** (-torch.arange(0, 4, 2) / 4))
        turns = torch.polar(torch.ones_like(angles), angles)

        def rotated(v):
            pairs = torch.view_as_complex(v.unflatten(2, (-1, 2)))
            return torch.view_as_real(pairs * turns).flatten(2)

        return self.out(torch.nn.functional.scaled_dot_product_attention(
            rotated(self.query(x)), rotated(self.key(x)), self.value(x), is_causal=True))


class Block(torch.nn.TransformerEncoderLayer):
    def forward(self, x):
        return super().forward(x, src_mask=causal(x.shape[1]))


def query_key_value_out(tensors):
    rows = [t for pair in zip(tensors[0].chunk(3), tensors[1].chunk(3)) for t in pair]
    return rows + list(tensors[2:4])


def block_in_order(tensors):
    return tensors[8:10] + query_key_value_out(tensors) + tensors[10:12] + tensors[4:8]


of_layers = len(values)
ids = torch.tensor([[3, 0, 6, 3], [1, 3, 2, 0], [5, 5, 5, 1]])
keep("ids", ids)
layer("embedding", noisy(torch.nn.Embedding(7, 2)), ids)
sequences = torch.randn(3, 5, 4)
keep("sequences", sequences)
layer("attention", noisy(Attention(4, 2, batch_first=True)), sequences, query_key_value_out)
layer("grouped_attention", noisy(GroupedAttention()), sequences)
layer("block", noisy(Block(4, 2, dim_feedforward=16, dropout=0, batch_first=True,
                           norm_first=True)), sequences, block_in_order)
layer("rotary_attention", noisy(RotaryAttention()), sequences)

of_sequences = len(values)
images = torch.randn(3, 4, 4, 5)
keep("images", images)
layer("group_norm", noisy(torch.nn.GroupNorm(2, 4, eps=1e-4)), images)
layer("depthwise", noisy(torch.nn.Conv2d(4, 8, (2, 3), stride=(1, 2), padding=(1, 0), groups=4)),
      images)
layer("network", noisy(torch.nn.Sequential(
    torch.nn.Conv2d(4, 6, 3, padding=1), torch.nn.GroupNorm(2, 6), torch.nn.ReLU(),
    torch.nn.MaxPool2d(2), torch.nn.Conv2d(6, 2, (1, 2)), torch.nn.AvgPool2d((2, 1)),
    torch.nn.Flatten(), torch.nn.Linear(2, 3))), images)

header, about, chosen = {
    "layers": ("torch_values", "layers, optimizers and schedules", values[:of_layers]),
    "sequences": ("torch_sequences", "layers of sequences", values[of_layers:of_sequences]),
    "images": ("torch_images", "layers of images", values[of_sequences:]),
}[sys.argv[1]]
print(f"""// What PyTorch {torch.__version__.split('+')[0]} computes for {about}. Written by
// tests/reference/nn_torch.py.
#pragma once

#include <vector>

namespace {header} {{
""")
print("\n".join(chosen))
print(f"}}  // namespace {header}")
