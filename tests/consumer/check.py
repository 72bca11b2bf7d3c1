#!/usr/bin/env python3
"""Ways to use cleave from outside: as a Meson subproject, installed for Meson, by pkg-config, by
CMake's find_package and FetchContent with presets, as a package of Conan, by a bare compiler
command; each header-only and, but for Conan, in compiled mode. Also checks what the linker reports for programs that use the compiled mode wrongly.

usage: check.py SOURCE_ROOT MESON COMPILER
"""

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

PROJECT = "tests/consumer/project"
HEADER_ONLY, COMPILED = "header-only", "compiled"
FOUND_BY_CMAKE = "found by CMake"
FETCHED_BY_CMAKE = "fetched by CMake"
PACKAGED_BY_CONAN = "packaged by Conan"
EXPECTED = "total 180 on 4 ranks\n"  # 0..4, 10..14, 20..24


class Failed(Exception):
    pass


def call(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        raise Failed(f"$ {' '.join(map(str, command))}\n{done.stdout[:20000]}")
    return done.stdout


def built_by_meson(tools, scratch, project, environment, mode, *options):
    build = scratch / "build"
    call(tools.meson, "setup", f"-Dcleave={library_of(mode)}", *options, build, project,
         env=environment)
    call("ninja", "-C", build, env=environment)
    return build / "consumer"


def library_of(mode):
    return "cleave-compiled" if mode == COMPILED else "cleave"


def as_subproject(tools, scratch, mode):
    project = scratch / "consumer"
    shutil.copytree(tools.source / PROJECT, project)
    (project / "subprojects/cleave").mkdir(parents=True)
    for name in ("include", "meson.build", "meson_options.txt", "subprojects"):
        copy = shutil.copytree if (tools.source / name).is_dir() else shutil.copy
        copy(tools.source / name, project / "subprojects/cleave" / name)
    return built_by_meson(tools, scratch, project, None, mode, "--force-fallback-for=cleave",
                          f"--force-fallback-for={library_of(mode)}")


def install(tools, scratch):
    """Installs the library alone. Returns an environment in which pkg-config finds it."""
    prefix = scratch / "prefix"
    call(tools.meson, "setup", f"--prefix={prefix}", "-Dtests=disabled", "-Dexamples=disabled",
         "-Dinstall_compiled=host", "-Doptimization=0", scratch / "library", tools.source)
    call(tools.meson, "install", "-C", scratch / "library")
    found = next(prefix.rglob("cleave.pc")).parent
    return dict(os.environ, PKG_CONFIG_PATH=str(found))


def installed(tools, scratch, mode):
    return built_by_meson(tools, scratch, tools.source / PROJECT, tools.installed.result(), mode,
                          "--wrap-mode=nofallback")


def by_pkg_config(tools, scratch, mode):
    flags = call("pkg-config", "--cflags", "--libs", library_of(mode),
                 env=tools.installed.result()).split()
    call(tools.compiler, "-std=c++20", tools.source / PROJECT / "main.cpp", *flags,
         "-o", scratch / "consumer")
    return scratch / "consumer"


def built_by_cmake(tools, scratch, mode, *options):
    """By the project's preset, which is named as the mode."""
    call("cmake", "--preset", mode, f"-DCMAKE_CXX_COMPILER={tools.compiler}", *options,
         "-S", tools.source / PROJECT, "-B", scratch / "build")
    call("cmake", "--build", scratch / "build")
    return scratch / "build/consumer"


def by_cmake(tools, scratch, mode):
    prefix = pathlib.Path(tools.installed.result()["PKG_CONFIG_PATH"]).parents[2]
    return built_by_cmake(tools, scratch, mode, f"-DCMAKE_PREFIX_PATH={prefix}")


def by_fetch_content(tools, scratch, mode):
    repository = scratch / "repository"
    shutil.copytree(tools.source / "include", repository / "include")
    shutil.copy(tools.source / "CMakeLists.txt", repository)
    git = ["git", "-C", repository, "-c", "user.name=test", "-c", "user.email=test"]
    call("git", "init", "--initial-branch=main", repository)
    call(*git, "add", ".")
    call(*git, "commit", "--message=What CMake needs")
    return built_by_cmake(tools, scratch, mode, f"-DCLEAVE_REPOSITORY={repository}")


def by_conan(tools, scratch, mode):
    environment = dict(os.environ, CONAN_HOME=str(scratch / "conan"), CXX=tools.compiler)
    call("conan", "profile", "detect", env=environment)
    settings = ["--no-remote", "-s", "compiler.cppstd=20", "-s", "build_type=Debug"]
    call("conan", "create", tools.source.resolve(), *settings, env=environment)
    version = call("conan", "inspect", tools.source.resolve(), "-f", "json", env=environment)
    version = json.loads(version[version.index("{"):])["version"]
    call("conan", "install", f"--requires=cleave/{version}", *settings, "-g", "CMakeDeps",
         "-g", "CMakeToolchain", "-of", scratch / "found", env=environment, cwd=scratch)
    return built_by_cmake(tools, scratch, mode, "-DCMAKE_BUILD_TYPE=Debug",
                          f"-DCMAKE_TOOLCHAIN_FILE={scratch / 'found/conan_toolchain.cmake'}")


def compiled_file(tools, scratch, name, mode):
    """Compiles an object file with a bare compiler command."""
    target = scratch / f"{name}.o"
    call(tools.compiler, "-std=c++20", f"-I{tools.source}/include",
         *(["-DCLEAVE_COMPILED=1"] if mode == COMPILED else []), "-c",
         tools.source / PROJECT / f"{name}.cpp", "-o", target)
    return target


def linked(tools, scratch, *objects):
    call(tools.compiler, *objects, "-pthread", "-o", scratch / "consumer")
    return scratch / "consumer"


def by_bare_command(tools, scratch, mode):
    files = ["main", "cleave"] if mode == COMPILED else ["main"]
    return linked(tools, scratch, *[compiled_file(tools, scratch, name, mode) for name in files])


def mixed_modes(tools, scratch):
    return linked(tools, scratch, compiled_file(tools, scratch, "main", HEADER_ONLY),
                  compiled_file(tools, scratch, "cleave", COMPILED))


def without_library(tools, scratch):
    return linked(tools, scratch, compiled_file(tools, scratch, "main", COMPILED))


WAYS = [
    ("vendored as a subproject", as_subproject),
    ("installed, found by Meson", installed),
    ("by the flags of pkg-config", by_pkg_config),
    (FOUND_BY_CMAKE, by_cmake),
    (FETCHED_BY_CMAKE, by_fetch_content),
    (PACKAGED_BY_CONAN, by_conan),
    ("by a bare compiler command", by_bare_command),
]
# What a way needs beside Meson and a compiler.
NEEDS = {FOUND_BY_CMAKE: ["cmake"], FETCHED_BY_CMAKE: ["cmake", "git"], PACKAGED_BY_CONAN: ["cmake", "conan"]}

MISTAKES = [
    ("a program whose files differ in mode does not link, and the linker names the macro",
     mixed_modes, "error_all_files_of_a_program_must_agree_on_CLEAVE_COMPILED"),
    ("a program in compiled mode without the library does not link, and the linker names both ways "
     "to get it", without_library,
     "cleave_error_link_cleave_compiled_or_include_cleave_compiled_hpp_in_one_file"),
]


def what_it_says(way, *arguments):
    with tempfile.TemporaryDirectory() as scratch:
        try:
            program = way(arguments[0], pathlib.Path(scratch), *arguments[1:])
            return call(program, "--ranks", "4")
        except Failed as failure:
            return str(failure)


@dataclass
class Tools:
    source: pathlib.Path
    meson: str
    compiler: str
    installed: concurrent.futures.Future = None  # the result of `install`


def main(source, meson, compiler):
    cases = Cases()
    tools = Tools(source, meson, compiler)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, \
            tempfile.TemporaryDirectory() as shared:
        tools.installed = pool.submit(install, tools, pathlib.Path(shared))
        said = {(name, mode): pool.submit(what_it_says, way, tools, mode)
                for mode in (HEADER_ONLY, COMPILED) for name, way in WAYS
                if (name, mode) != (PACKAGED_BY_CONAN, COMPILED)}
        wrong = [pool.submit(what_it_says, way, tools) for _, way, _ in MISTAKES]
        for (name, mode), output in said.items():
            missing = [tool for tool in NEEDS.get(name, []) if not shutil.which(tool)]
            if missing:
                cases.skip(f"the consumer works {name}, {mode}", f"there is no {missing[0]}")
                continue
            cases.check(f"the consumer works {name}, {mode}", output.result() == EXPECTED,
                        output.result())
        for (sentence, _, expected), output in zip(MISTAKES, wrong):
            cases.check(sentence, expected in output.result(), output.result())
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), *sys.argv[2:]))
