#!/usr/bin/env python3
"""clang-tidy finds nothing in the headers of the host, with the checks of .clang-tidy.

usage: lint.py SOURCE_ROOT BUILD_ROOT CLANG_TIDY
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from consumer_flags import consumer_flags

USERS = ["cleave/cleave.hpp", "cleave/spmd.hpp", "cleave/grad.hpp", "cleave/nn.hpp",
         "cleave/parallel.hpp", "cleave/comm/dry.hpp", "cleave/interop/scalapack_factors.hpp",
         "cleave/interop/scalapack_solvers.hpp", "cleave/interop/hdf5.hpp",
         "cleave/interop/netcdf.hpp"]
MPI = ["cleave/comm/mpi.hpp"]

PLANTED = """#pragma once
#include <string>
namespace cleave {
struct Planted {
  std::string text;
  Planted& operator=(const Planted&) = default;
  bool empty(std::string by_value) const { return by_value.size() == 0; }
};
}
"""


def lint(tidy, root, source, flags):
    """The output of clang-tidy for a file and the headers that it includes."""
    done = subprocess.run([tidy, "--quiet", f"--config-file={root}/.clang-tidy", str(source), "--",
                           "-std=c++20", *flags], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode == 0:
        return ""
    return (done.stdout + done.stderr).strip()[:8000] or f"exit status {done.returncode}"


def main(root, build, tidy):
    cases = Cases()
    flags = consumer_flags(root, build)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        source = folder / "headers.cpp"
        headers = USERS + (MPI if "-DCLEAVE_HAS_MPI=1" in flags else [])
        source.write_text("".join(f"#include <{header}>\n" for header in headers))
        said = lint(tidy, root, source, flags)
        cases.check("clang-tidy finds nothing in the headers", not said, said)

        planted = folder / "include" / "cleave" / "planted.hpp"
        planted.parent.mkdir(parents=True)
        planted.write_text(PLANTED)
        source.write_text("#include <cleave/planted.hpp>\n")
        said = lint(tidy, root, source, [f"-I{folder}/include"])
        for name in ("performance-unnecessary-value-param", "readability-container-size-empty"):
            cases.check(f"clang-tidy finds what {name} is about", name in said, said)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[1:3]), sys.argv[3]))
