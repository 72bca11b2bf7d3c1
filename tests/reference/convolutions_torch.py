#!/usr/bin/env python3
"""Writes PyTorch's values of convolutions, pooling and their gradients to
tests/ops/convolutions_torch.hpp.

usage: python3 convolutions_torch.py > ../ops/convolutions_torch.hpp     (needs torch)
"""

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(12)


def eighths(*extents):
    """Numbers whose sums of products are exact."""
    return torch.round(torch.randn(*extents) * 8) / 8


def keep(name, tensor):
    numbers = [f"{n:.17g}" for n in tensor.detach().reshape(-1).tolist()]
    lines = [", ".join(numbers[i:i + 10]) for i in range(0, len(numbers), 10)]
    print(f"inline const std::vector<double> {name}{{\n    " + ",\n    ".join(lines) + "};")


def checked(name, operands, f):
    """The result, and the gradients of sum(y * y) in the operands."""
    leaves = {key: value.clone().requires_grad_() for key, value in operands.items()}
    y = f(*leaves.values())
    (y * y).sum().backward()
    keep(f"{name}_result", y)
    for key, leaf in leaves.items():
        keep(f"{name}_{key}", leaf.grad)


def convolution(name, function, x, weight, bias, **options):
    checked(name, {"x": x, "weight": weight, "bias": bias},
            lambda a, w, b: function(a, w, b, **options))


images, filters, bias, six = eighths(2, 4, 5, 6), eighths(72), eighths(3), eighths(6)
print(f"// Written by tests/reference/convolutions_torch.py with torch {torch.__version__}, seed 12.")
print("#pragma once\n\n#include <vector>\n\nnamespace convolutions_torch {\n\n// clang-format off")
for name, values in {"image_values": images, "filter_values": filters, "bias_values": bias,
                     "bias_of_six": six}.items():
    keep(name, values)
convolution("conv2d", F.conv2d, images, filters.reshape(3, 4, 3, 2), bias, stride=(2, 1),
            padding=(1, 2), dilation=(1, 3))
convolution("grouped", F.conv2d, images, filters.reshape(6, 2, 2, 3), six, padding=(0, 1), groups=2)
convolution("conv1d", F.conv1d, images.reshape(2, 4, 30), filters.reshape(3, 4, 6), bias, stride=3,
            padding=2, dilation=2)
# halves, so that several elements of a window may equal the maximum
halves = torch.round(images * 2) / 2
keep("halves", halves)
checked("max_pool", {"x": halves},
        lambda x: F.max_pool2d(x, (3, 2), stride=(1, 2), padding=(1, 1)))
checked("avg_pool", {"x": images},
        lambda x: F.avg_pool2d(x, (3, 2), stride=(1, 2), padding=(1, 1)))
print("// clang-format on\n\n}  // namespace convolutions_torch")
