// Parallel training: modules of one device that become distributed ones.
#pragma once

#include <cleave/nn.hpp>
#include <cleave/parallel/replicate.hpp>
