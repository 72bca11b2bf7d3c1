#!/usr/bin/env python3
"""Writes tests/nn/torch_values.hpp: what PyTorch computes for layers, optimizers and schedules.

usage: nn_torch.py > tests/nn/torch_values.hpp        (needs torch; made with 2.15.0)
"""

import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
values = []


def keep(name, *tensors):
    numbers = [n for t in tensors for n in t.detach().reshape(-1).tolist()]
    lines = [", ".join(f"{n!r}" for n in numbers[i:i + 4]) for i in range(0, len(numbers), 4)]
    text = ",\n    ".join(lines)
    values.append(f"inline const std::vector<double> {name}{{\n    {text}}};\n")


def layer(name, module, x):
    """Parameters, input, result, and the gradients of sum(y * y) in parameters and input."""
    x = x.clone().requires_grad_()
    y = module(x)
    (y * y).sum().backward()
    parameters = list(module.parameters())
    keep(f"{name}_parameters", *parameters)
    keep(f"{name}_result", y)
    keep(f"{name}_gradients", *[p.grad for p in parameters])
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

print(f"""// What PyTorch {torch.__version__.split('+')[0]} computes for layers, optimizers and schedules. Written by
// tests/reference/nn_torch.py.
#pragma once

#include <vector>

namespace torch_values {{
""")
print("\n".join(values))
print("}  // namespace torch_values")
