"""The compiler flags of a consumer with all features: those in cleave.pc of a build directory."""

import os
import subprocess


def consumer_flags(root, build):
    """The words of `pkg-config --cflags cleave`, with the source tree's headers. The headers of
    its dependencies are included as system headers, which do not warn."""
    environment = dict(os.environ, PKG_CONFIG_PATH=f"{build}/meson-uninstalled")
    done = subprocess.run(["pkg-config", "--cflags", "cleave"], env=environment,
                          check=True, text=True, stdout=subprocess.PIPE)
    words = [word.replace("-I", "-isystem", 1) if word.startswith("-I") else word
             for word in done.stdout.split()]
    return [f"-I{root}/include", *words]
