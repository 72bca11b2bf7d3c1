#!/usr/bin/env python3
"""Writes PyTorch's values of activations and their gradients to tests/ops/activations_torch.hpp.

usage: python3 activations_torch.py > ../ops/activations_torch.hpp     (needs torch)
"""

import torch
import torch.nn.functional as F

FUNCTIONS = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "softplus": F.softplus,
    "softplus_2_1": lambda x: F.softplus(x, beta=2, threshold=1),
    "mish": F.mish,
    "logsigmoid": F.logsigmoid,
    "softsign": F.softsign,
    "leaky_relu_03": lambda x: F.leaky_relu(x, 0.3),
    "elu_15": lambda x: F.elu(x, 1.5),
    "selu": F.selu,
    "celu_15": lambda x: F.celu(x, 1.5),
    "hardtanh": F.hardtanh,
    "relu6": F.relu6,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "clamp": lambda x: torch.clamp(x, -1.5, 2),
}


def row(values):
    return "{" + ", ".join(repr(float(v)) for v in values) + "}"


def main():
    torch.manual_seed(7)
    x = (torch.randn(8, dtype=torch.float64) * 3).requires_grad_()
    version = torch.__version__
    print(f"// Written by tests/reference/activations_torch.py with torch {version}, seed 7.")
    print("#pragma once\n\n#include <array>\n#include <map>\n#include <string>\n")
    print("namespace cleave::testing::torch {\n")
    print("using Row = std::array<double, 8>;\n")
    print("/// A function's values at `x`, and the gradient of their sum.\nstruct Values {")
    print("  Row y, slope;\n};\n")
    print("// clang-format off")
    print(f"inline const Row x{row(x.detach())};\n")
    print("inline const std::map<std::string, Values> values{")
    for name, function in FUNCTIONS.items():
        x.grad = None
        y = function(x)
        y.sum().backward()
        print(f'  {{"{name}", {{{row(y.detach())},\n    {row(x.grad)}}}}},')
    print("};\n// clang-format on\n\n}  // namespace cleave::testing::torch")


if __name__ == "__main__":
    main()
