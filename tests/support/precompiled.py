"""Headers that many small files include, read once for all of them."""

import pathlib
import subprocess


def precompiled(folder, command, includes):
    """Flags with which a compiler's command finds all that included; a file in the folder keeps it."""
    header = pathlib.Path(folder) / "precompiled.hpp"
    header.write_text("".join(f"#include <{include}>\n" for include in includes))
    subprocess.run([*command, "-x", "c++-header", str(header), "-o", f"{header}.gch"], check=True)
    return ["-include", str(header)]
