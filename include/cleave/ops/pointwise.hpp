// The named elementwise operations: one pass, broadcasting, numbers as operands.
//
// Operands have one element type; numbers are converted to it, unless that would narrow their kind.
// Linear operations keep a Partial operand partial, which defers its reduction.
#pragma once

#include <cleave/ops/activations.hpp>
#include <cleave/ops/arithmetic.hpp>
#include <cleave/ops/blends.hpp>
#include <cleave/ops/comparisons.hpp>
#include <cleave/ops/functions.hpp>
#include <cleave/ops/powers.hpp>
#include <cleave/ops/rounding.hpp>
#include <cleave/ops/select.hpp>
#include <cleave/ops/trigonometry.hpp>
