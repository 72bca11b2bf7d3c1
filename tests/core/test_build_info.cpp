// What build_info says of this build and of the environment.
#include <string>

#include <doctest/doctest.h>
#include <stdlib.h>

#include <cleave/core/build_info.hpp>

#include "errors.hpp"

using namespace cleave;
using cleave::testing::contains;

namespace {

/// Whether a text lists a feature among those that are there.
bool has(const std::string& text, const std::string& name) {
  const std::size_t begin = text.find("features: "), end = text.find_first_of(";\n", begin);
  REQUIRE(end != std::string::npos);
  return contains(text.substr(begin, end - begin), name);
}

}  // namespace

TEST_CASE("features are those of the macros") {
  const std::string text = build_info();
  INFO(text);
  CHECK(text.starts_with("cleave " + std::to_string(CLEAVE_VERSION_MAJOR) + '.'));
#if CLEAVE_COMPILED
  CHECK(contains(text, ", compiled mode\n"));
#else
  CHECK(contains(text, ", header-only\n"));
#endif
#if CLEAVE_HAS_MPI
  CHECK(has(text, "MPI"));
#else
  CHECK((!has(text, "MPI") && contains(text, "; not MPI")));
#endif
#if CLEAVE_HAS_CBLAS
  CHECK(has(text, "BLAS"));
#else
  CHECK(!has(text, "BLAS"));
#endif
#if !CLEAVE_HAS_NCCL
  CHECK((!has(text, "NCCL") && contains(text, "NCCL\nenvironment:")));
#endif
}

TEST_CASE("variables of the environment are listed in alphabetical order") {
  setenv("CLEAVE_X_LAST", "b c", 1);
  setenv("CLEAVE_X_FIRST", "1", 1);
  setenv("OTHER_CLEAVE_X", "1", 1);
  const std::string text = build_info();
  INFO(text);
  CHECK(contains(text, " CLEAVE_X_FIRST=1 CLEAVE_X_LAST=b c\n"));
  CHECK(!contains(text, "OTHER"));
  unsetenv("CLEAVE_X_LAST");
  unsetenv("CLEAVE_X_FIRST");
  unsetenv("OTHER_CLEAVE_X");
  CHECK(!contains(build_info(), "CLEAVE_X"));
}
