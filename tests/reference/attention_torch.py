#!/usr/bin/env python3
"""Writes PyTorch's values and gradients of attention with masks, and of functions of rows with
infinities, to tests/ops/attention_torch.hpp.

usage: python3 attention_torch.py > ../ops/attention_torch.hpp     (needs torch)
"""

import torch
import torch.nn.functional as F

INFINITY = float("inf")


def row(values):
    numbers = []
    for v in values.reshape(-1).tolist():
        numbers.append("-inf" if v == -INFINITY else "inf" if v == INFINITY else
                       "nan" if v != v else repr(float(v)))
    lines = [", ".join(numbers[i:i + 4]) for i in range(0, len(numbers), 4)]
    return "{" + ",\n     ".join(lines) + "}"


def attention(data, mask=None, **options):
    leaves = [data[name].clone().requires_grad_() for name in "qkv"]
    if mask is not None and mask.is_floating_point():
        mask = mask.clone().requires_grad_()
        leaves.append(mask)
    y = F.scaled_dot_product_attention(*leaves[:3], attn_mask=mask, **options)
    return y, torch.autograd.grad((y * data["g"]).sum(), leaves)


def masks():
    seen = torch.rand(2, 4, 6) < 0.6
    seen[0, 1] = False
    padding = torch.rand(2, 1, 6) < 0.7
    padding[:, 0, 0] = True
    added = torch.randn(4, 6, dtype=torch.float64)
    added[2] = -INFINITY
    added[0, 3] = -INFINITY
    return {"seen": seen, "padding": padding, "added": added}


ROWS = {
    "softmax": lambda x, _: torch.softmax(x, 1),
    "log_softmax": lambda x, _: torch.log_softmax(x, 1),
    "logsumexp": lambda x, _: torch.logsumexp(x, 1),
    "cross_entropy": F.cross_entropy,
    "cross_entropy_none": lambda x, c: F.cross_entropy(x, c, reduction="none"),
    "cross_entropy_smooth": lambda x, c: F.cross_entropy(x, c, reduction="none",
                                                         label_smoothing=0.1),
}


def of_rows(name, x, classes):
    x = x.clone().requires_grad_()
    y = ROWS[name](x, classes)
    weights = torch.arange(1, y.numel() + 1, dtype=torch.float64).reshape(y.shape)
    if name == "log_softmax":  # infinite results have weight zero
        weights = torch.where(torch.isfinite(y), weights, 0)
    y.backward(weights)
    return y.detach(), x.grad


def main():
    torch.manual_seed(31)
    double = {"dtype": torch.float64}
    data = {"q": torch.randn(2, 4, 3, **double), "k": torch.randn(2, 6, 3, **double),
            "v": torch.randn(2, 6, 5, **double), "g": torch.randn(2, 4, 5, **double)}
    print(f"// Written by tests/reference/attention_torch.py with torch {torch.__version__}, seed 31.")
    print("#pragma once\n\n#include <limits>\n#include <map>\n#include <string>\n#include <vector>\n")
    print("namespace cleave::testing::torch_attention {\n")
    print("using Row = std::vector<double>;\n")
    print("inline constexpr double inf = std::numeric_limits<double>::infinity(),\n"
          "                        nan = std::numeric_limits<double>::quiet_NaN();\n")
    print("/// Operands: q [2, 4, 3], k [2, 6, 3], v [2, 6, 5]; g [2, 4, 5]; masks.\n"
          "// clang-format off")
    for name, values in (data | masks()).items():
        data[name] = values
        print(f"inline const Row {name}{row(values.double())};")
    print("\n/// Attention, and the gradients of sum(g y) in q, k, v and a mask of numbers.")
    print("struct Attention {\n  Row y;\n  std::vector<Row> slopes;\n};\n")
    print("inline const std::map<std::string, Attention> attentions{")
    for name in ["plain", "causal", "seen", "padding", "added"]:
        y, slopes = attention(data, data.get(name), is_causal=name == "causal")
        rows = ",\n    ".join(row(s) for s in slopes)
        print(f'  {{"{name}", {{{row(y.detach())},\n    {{{rows}}}}}}},')
    print("};\n\n/// Numbers with infinities [5, 4], and classes [5].")
    x = torch.randn(5, 4, **double)
    x[1, 2], x[2, 0], x[2, 3] = -INFINITY, -INFINITY, -INFINITY
    x[3] = -INFINITY
    classes = torch.tensor([1, 0, 1, 2, 3])
    finite = torch.tensor([0, 1, 2, 4])
    print(f"inline const Row x{row(x)};\ninline const Row classes{row(classes.double())};")
    print("\n/// Functions of the rows, and the gradients of results weighted by 1, 2, ..; of losses\n"
          "/// without row 3, which has no finite number.")
    print("struct OfRows {\n  Row y, slope;\n};\n")
    print("inline const std::map<std::string, OfRows> of_rows{")
    for name in ROWS:
        some = finite if name.startswith("cross") else torch.arange(5)
        y, slope = of_rows(name, x[some], classes[some])
        print(f'  {{"{name}", {{{row(y)},\n    {row(slope)}}}}},')
    print("};\n// clang-format on\n\n}  // namespace cleave::testing::torch_attention")


if __name__ == "__main__":
    main()
