"""Python with modules that not every installation has."""

import importlib.util
import os
import pathlib
import subprocess
import sys

from cases import Cases


def require(*modules):
    """Returns if this interpreter has the modules. If the system's has them, the script starts again
    in it; otherwise it ends, and its only case is skipped."""
    if all(importlib.util.find_spec(module) for module in modules):
        return
    system = "/usr/bin/python3"
    if pathlib.Path(system).exists() and subprocess.run(
            [system, "-c", "import " + ", ".join(modules)], stderr=subprocess.DEVNULL,
            check=False).returncode == 0:
        os.execv(system, [system, *sys.argv])
    cases = Cases()
    packages = " ".join("python3-" + module.lower() for module in modules)
    cases.skip("this test", f"Python has no {' or '.join(modules)} (Debian: {packages})")
    sys.exit(cases.finish())
