"""Python with modules that not every installation has."""

import importlib.util
import os
import pathlib
import subprocess
import sys

from cases import Cases


def python_that_runs(code):
    """This interpreter, or the first python3 in the PATH, that runs the code; None if none does."""
    for python in [sys.executable, *(f"{folder}/python3" for folder in os.get_exec_path())]:
        if pathlib.Path(python).exists() and subprocess.run(
                [python, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return python
    return None


def require(*modules, packages=""):
    """Returns if this interpreter has the modules. If another one has them, the script starts again
    in it; otherwise it ends, and its only case is skipped, naming the packages, by default Debian's."""
    if all(importlib.util.find_spec(module) for module in modules):
        return
    python = python_that_runs("import " + ", ".join(modules))
    if python:
        os.execv(python, [python, *sys.argv])
    cases = Cases()
    packages = packages or "Debian: " + " ".join("python3-" + module.lower() for module in modules)
    cases.skip("this test", f"Python has no {' or '.join(modules)} ({packages})")
    sys.exit(cases.finish())
