// Gradients of programs: what a program includes beside cleave.hpp to differentiate.
#pragma once

#include <cleave/cleave.hpp>
#include <cleave/grad/backward.hpp>
#include <cleave/grad/cross_mesh.hpp>
#include <cleave/grad/local.hpp>
