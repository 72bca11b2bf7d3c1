// Parallel training: turns modules of one device into distributed modules.
#pragma once

#include <cleave/nn.hpp>
#include <cleave/parallel/distribute_module.hpp>
#include <cleave/parallel/fully_shard.hpp>
#include <cleave/parallel/parallelize_module.hpp>
#include <cleave/parallel/power_sgd.hpp>
#include <cleave/parallel/prepare_module.hpp>
#include <cleave/parallel/random_region.hpp>
#include <cleave/parallel/replicate.hpp>
#include <cleave/parallel/requires_gradient_sync.hpp>
#include <cleave/parallel/top_k.hpp>
