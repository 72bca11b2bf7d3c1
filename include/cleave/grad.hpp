// Gradients of programs. Includes cleave.hpp.
#pragma once

#include <cleave/cleave.hpp>
#include <cleave/grad/backward.hpp>
#include <cleave/grad/local.hpp>
#include <cleave/grad/tracked_cross_mesh.hpp>
#include <cleave/grad/tracked_stencil.hpp>
