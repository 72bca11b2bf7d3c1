// Gradients of programs. Includes cleave.hpp.
#pragma once

#include <cleave/cleave.hpp>
#include <cleave/grad/backward.hpp>
#include <cleave/grad/cross_mesh.hpp>
#include <cleave/grad/local.hpp>
