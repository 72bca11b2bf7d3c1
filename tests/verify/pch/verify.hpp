// The precompiled includes shared by all files of the verification, except subject.hpp, which must
// come after the naive definitions.
#ifndef CLEAVE_TESTS_VERIFY_PCH  // the main file of a precompilation cannot use `#pragma once`
#define CLEAVE_TESTS_VERIFY_PCH

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/grad/backward.hpp>
#include <cleave/rules/explain_solution.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "../list/listed.hpp"
#include "../naive/operation.hpp"

#endif
