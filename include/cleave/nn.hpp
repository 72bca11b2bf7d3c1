// Neural networks: modules, their placement and gradients, optimizers, checkpoints.
#pragma once

#include <cleave/dtensor/initialisers.hpp>
#include <cleave/grad.hpp>
#include <cleave/nn/adam.hpp>
#include <cleave/nn/attention_layer.hpp>
#include <cleave/nn/checkpoint.hpp>
#include <cleave/nn/clip.hpp>
#include <cleave/nn/describe.hpp>
#include <cleave/nn/dropout_layer.hpp>
#include <cleave/nn/embedding.hpp>
#include <cleave/nn/exact_layers.hpp>
#include <cleave/nn/images.hpp>
#include <cleave/nn/layers.hpp>
#include <cleave/nn/learning_rate.hpp>
#include <cleave/nn/mode.hpp>
#include <cleave/nn/place.hpp>
#include <cleave/nn/sgd.hpp>
#include <cleave/nn/traced_module.hpp>
#include <cleave/nn/track.hpp>
#include <cleave/nn/transformer.hpp>
#include <cleave/nn/tree.hpp>
#include <cleave/nn/visit.hpp>
#include <cleave/nn/with_paths.hpp>
#include <cleave/ops/convolutions/conv_transpose.hpp>
#include <cleave/ops/losses/class_losses.hpp>
#include <cleave/ops/losses/losses.hpp>
