#!/usr/bin/env python3
"""Four ways to use cleave from outside: as a Meson subproject, installed for Meson, by pkg-config,
by a bare command.

usage: check.py SOURCE_ROOT MESON COMPILER
"""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

PROJECT = "tests/consumer/project"
EXPECTED = "total 180 on 4 ranks\n"  # 0..4, 10..14, 20..24


class Failed(Exception):
    pass


def call(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        raise Failed(f"$ {' '.join(map(str, command))}\n{done.stdout[-4000:]}")
    return done.stdout


def built_by_meson(meson, project, build, environment, *options):
    call(meson, "setup", *options, build, project, env=environment)
    call("ninja", "-C", build, env=environment)
    return build / "consumer"


def as_subproject(scratch, source, meson, compiler):
    project = scratch / "consumer"
    shutil.copytree(source / PROJECT, project)
    (project / "subprojects/cleave").mkdir(parents=True)
    for name in ("include", "meson.build", "meson_options.txt", "subprojects"):
        copy = shutil.copytree if (source / name).is_dir() else shutil.copy
        copy(source / name, project / "subprojects/cleave" / name)
    return built_by_meson(meson, project, scratch / "build", None,
                          "--force-fallback-for=cleave")


def install(scratch, source, meson):
    """Installs the library alone; an environment in which pkg-config finds it."""
    prefix = scratch / "prefix"
    call(meson, "setup", f"--prefix={prefix}", "-Dtests=disabled", "-Dexamples=disabled",
         scratch / "library", source)
    call(meson, "install", "-C", scratch / "library")
    found = next(prefix.rglob("cleave.pc")).parent
    return dict(os.environ, PKG_CONFIG_PATH=str(found))


def installed(scratch, source, meson, compiler):
    return built_by_meson(meson, source / PROJECT, scratch / "build",
                          install(scratch, source, meson), "--wrap-mode=nofallback")


def by_pkg_config(scratch, source, meson, compiler):
    flags = call("pkg-config", "--cflags", "--libs", "cleave",
                 env=install(scratch, source, meson)).split()
    call(compiler, "-std=c++20", source / PROJECT / "main.cpp", *flags,
         "-o", scratch / "consumer")
    return scratch / "consumer"


def by_bare_command(scratch, source, meson, compiler):
    call(compiler, "-std=c++20", "-O2", f"-I{source}/include",
         source / PROJECT / "main.cpp", "-pthread", "-o", scratch / "consumer")
    return scratch / "consumer"


WAYS = [
    ("vendored as a subproject", as_subproject),
    ("installed, found by Meson", installed),
    ("by the flags of pkg-config", by_pkg_config),
    ("by a bare compiler command", by_bare_command),
]


def what_it_says(way, source, meson, compiler):
    with tempfile.TemporaryDirectory() as scratch:
        try:
            program = way(pathlib.Path(scratch), source, meson, compiler)
            return call(program, "--ranks", "4")
        except Failed as failure:
            return str(failure)


def main(source, meson, compiler):
    cases = Cases()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = pool.map(lambda way: what_it_says(way[1], source, meson, compiler), WAYS)
        for (name, _), output in zip(WAYS, said):
            cases.check(f"the consumer works {name}", output == EXPECTED, output)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), *sys.argv[2:]))
