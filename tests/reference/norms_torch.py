#!/usr/bin/env python3
"""Writes PyTorch's values of layer_norm and rms_norm, of their gradients and of a second-order
gradient to tests/ops/norms_torch.hpp.

usage: python3 norms_torch.py > ../ops/norms_torch.hpp     (needs torch)
"""

import torch
import torch.nn.functional as F

NORMS = {
    "layer_norm": (lambda x, *_: F.layer_norm(x, x.shape[-1:], eps=1e-5), 0),
    "layer_norm_w": (lambda x, w, _: F.layer_norm(x, x.shape[-1:], w, eps=0.1), 1),
    "layer_norm_wb": (lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, eps=1e-5), 2),
    "rms_norm": (lambda x, *_: F.rms_norm(x, x.shape[-1:], eps=1e-6), 0),
    "rms_norm_w": (lambda x, w, _: F.rms_norm(x, x.shape[-1:], w, eps=0.1), 1),
}


def row(values):
    numbers = [repr(float(v)) for v in values.reshape(-1)]
    lines = [", ".join(numbers[i:i + 4]) for i in range(0, len(numbers), 4)]
    return "{" + ",\n     ".join(lines) + "}"


def main():
    torch.manual_seed(23)
    data = {"x": torch.randn(3, 2, 5, dtype=torch.float64) * 2 + 1,
            "weight": torch.randn(5, dtype=torch.float64),
            "bias": torch.randn(5, dtype=torch.float64),
            "g": torch.randn(3, 2, 5, dtype=torch.float64),
            "v": torch.randn(3, 2, 5, dtype=torch.float64)}
    print(f"// Written by tests/reference/norms_torch.py with torch {torch.__version__}, seed 23.")
    print("#pragma once\n\n#include <map>\n#include <string>\n#include <vector>\n")
    print("namespace cleave::testing::torch_norms {\n")
    print("using Row = std::vector<double>;\n")
    print("/// Operands: x, g and v [3, 2, 5], weight and bias [5].\n// clang-format off")
    for name, values in data.items():
        print(f"inline const Row {name}{row(values)};")
    print("\n/// A norm y; the gradients of sum(g y) in x, weight and bias, as far as they are there;"
          "\n/// and that of sum(v dx) in x.")
    print("struct Norm {\n  Row y;\n  std::vector<Row> slopes;\n  Row second;\n};\n")
    print("inline const std::map<std::string, Norm> norms{")
    for name, (function, count) in NORMS.items():
        x, weight, bias = (data[n].clone().requires_grad_() for n in ["x", "weight", "bias"])
        y = function(x, weight, bias)
        slopes = torch.autograd.grad((data["g"] * y).sum(), [x, weight, bias][:count + 1],
                                     create_graph=True)
        second, = torch.autograd.grad((data["v"] * slopes[0]).sum(), [x])
        rows = ",\n    ".join(row(s.detach()) for s in slopes)
        print(f'  {{"{name}", {{{row(y.detach())},\n    {{{rows}}},\n    {row(second)}}}}},')
    print("};\n// clang-format on\n\n}  // namespace cleave::testing::torch_norms")


if __name__ == "__main__":
    main()
