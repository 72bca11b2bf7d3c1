"""How a consumer with all features compiles: what cleave.pc of a build directory says."""

import os
import subprocess


def consumer_flags(build, *kinds):
    """The words of `pkg-config --cflags cleave`, or of other kinds (`--libs`)."""
    environment = dict(os.environ, PKG_CONFIG_PATH=f"{build}/meson-uninstalled")
    done = subprocess.run(["pkg-config", *(kinds or ["--cflags"]), "cleave"], env=environment,
                          check=True, text=True, stdout=subprocess.PIPE)
    return done.stdout.split()
