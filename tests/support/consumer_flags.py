"""How a consumer with all features compiles: what cleave.pc of a build directory says."""

import os
import subprocess


def consumer_flags(root, build):
    """The words of `pkg-config --cflags cleave`, with the headers of the source tree."""
    environment = dict(os.environ, PKG_CONFIG_PATH=f"{build}/meson-uninstalled")
    done = subprocess.run(["pkg-config", "--cflags", "cleave"], env=environment,
                          check=True, text=True, stdout=subprocess.PIPE)
    return [f"-I{root}/include", *done.stdout.split()]
