// The named elementwise operations: one pass, broadcasting, numbers as operands.
//
// Operands have one element type; numbers are converted to it, if they do not lose their kind.
// Those that are linear keep a Partial operand partial, so that its reduction can wait.
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
