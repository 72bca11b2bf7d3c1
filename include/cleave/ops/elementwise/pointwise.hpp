// The named elementwise operations: one pass, broadcasting, numbers as operands.
//
// Operands have one element type; numbers are converted to it, unless that would narrow their kind.
// Linear operations keep a Partial operand partial, which defers its reduction.
#pragma once

#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/elementwise/clamp_lerp.hpp>
#include <cleave/ops/elementwise/comparisons.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/elementwise/powers.hpp>
#include <cleave/ops/elementwise/rounding.hpp>
#include <cleave/ops/elementwise/trigonometry.hpp>
#include <cleave/ops/elementwise/where.hpp>
