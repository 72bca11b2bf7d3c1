"""Precompiles headers that many small files include."""

import pathlib
import subprocess


def precompiled(folder, command, includes):
    """Precompiles the headers into `folder`. Returns the compiler flags that use the result."""
    header = pathlib.Path(folder) / "precompiled.hpp"
    header.write_text("".join(f"#include <{include}>\n" for include in includes))
    subprocess.run([*command, "-x", "c++-header", str(header), "-o", f"{header}.gch"], check=True)
    return ["-include", str(header)]
