// Networks: modules, their placement and gradients.
#pragma once

#include <cleave/grad.hpp>
#include <cleave/nn/describe.hpp>
#include <cleave/nn/layers.hpp>
#include <cleave/nn/mode.hpp>
#include <cleave/nn/place.hpp>
#include <cleave/nn/track.hpp>
#include <cleave/nn/tree.hpp>
#include <cleave/nn/visit.hpp>
