// What all files of the verification include, precompiled, but for subject.hpp itself: that has to
// come after the naive definitions.
#ifndef CLEAVE_TESTS_VERIFY_PCH  // what is precompiled is no included file, and has no `#pragma once`
#define CLEAVE_TESTS_VERIFY_PCH

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <cleave/grad/backward.hpp>
#include <cleave/ops/list/entry.hpp>
#include <cleave/rules/explain.hpp>
#include <cleave/spmd/traced.hpp>
#include "../naive/operation.hpp"

#endif
