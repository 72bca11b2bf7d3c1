// The host side of cleave, all of it: what a program includes.
//
// Needs C++20 and threads. MPI, a BLAS and Random123 come in where the build says that they are
// there (CLEAVE_HAS_MPI, CLEAVE_HAS_CBLAS, CLEAVE_HAS_RANDOM123).
#pragma once

#include <cleave/comm/dry.hpp>
#include <cleave/comm/run.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/comm/world.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/dtensor/visualize.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/tensor/npy.hpp>
#include <cleave/tensor/tensor.hpp>
