#!/usr/bin/env python3
"""Writes PyTorch's values of losses and their gradients to tests/ops/losses_torch.hpp.

usage: python3 losses_torch.py > ../ops/losses_torch.hpp     (needs torch)
"""

import torch
import torch.nn.functional as F

LOSSES = {
    "mse": (F.mse_loss, {}),
    "bce": (F.binary_cross_entropy, {}),
    "bce_logits": (F.binary_cross_entropy_with_logits, {}),
    "nll": (F.nll_loss, {}),
    "nll_ignored": (F.nll_loss, {"ignore_index": 2}),
    "cross_entropy": (F.cross_entropy, {}),
    "cross_entropy_ignored": (F.cross_entropy, {"ignore_index": 2}),
    "cross_entropy_smooth": (F.cross_entropy, {"label_smoothing": 0.1}),
    "cross_entropy_both": (F.cross_entropy, {"label_smoothing": 0.3, "ignore_index": 2}),
}


def row(values):
    numbers = [repr(float(v)) for v in values.reshape(-1)]
    lines = [", ".join(numbers[i:i + 4]) for i in range(0, len(numbers), 4)]
    return "{" + ",\n     ".join(lines) + "}"


def inputs(name, data):
    classes = data["other_classes" if name.endswith(("ignored", "both")) else "classes"]
    if name.startswith("bce"):
        return data["chances" if name == "bce" else "x"], data["targets"]
    if name == "mse":
        return data["x"], data["targets"]
    return data["log_chances" if name.startswith("nll") else "x"], classes


def main():
    torch.manual_seed(11)
    x = torch.randn(6, 5, dtype=torch.float64) * 3
    chances = torch.rand(6, 5, dtype=torch.float64)
    chances[0, 0], chances[0, 1] = 0, 1
    targets = torch.rand(6, 5, dtype=torch.float64)
    targets[1] = torch.tensor([0, 1, 0, 1, 1])
    classes = torch.tensor([4, 2, 0, 2, -100, 1])
    data = {"x": x, "chances": chances, "targets": targets, "classes": classes,
            "other_classes": torch.where(classes < 0, 3, classes),
            "log_chances": torch.log_softmax(x, 1)}
    print(f"// Written by tests/reference/losses_torch.py with torch {torch.__version__}, seed 11.")
    print("#pragma once\n\n#include <map>\n#include <string>\n#include <vector>\n")
    print("namespace cleave::testing::torch_losses {\n")
    print("using Row = std::vector<double>;\n")
    print("/// Operands, [6, 5] and [6].\n// clang-format off")
    for name, values in data.items():
        print(f"inline const Row {name}{row(values)};")
    print("\n/// A loss, and the gradient of its sum in the first operand.")
    print("struct Loss {\n  Row y, slope;\n};\n")
    print("inline const std::map<std::string, Loss> losses{")
    for name, (function, options) in LOSSES.items():
        for reduction in ["none", "mean", "sum"]:
            first, second = inputs(name, data)
            first = first.clone().requires_grad_()
            y = function(first, second, reduction=reduction, **options)
            y.sum().backward()
            print(f'  {{"{name}.{reduction}", {{{row(y.detach())},\n    {row(first.grad)}}}}},')
    print("};\n// clang-format on\n\n}  // namespace cleave::testing::torch_losses")


if __name__ == "__main__":
    main()
