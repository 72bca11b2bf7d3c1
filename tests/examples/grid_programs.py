"""What the tests of programs on grids have in common."""

import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from programs import check_refusals, run

VALUE = re.compile(r"^u\((\d+), (\d+)\) = (\S+)$", re.MULTILINE)
MESHES = ((1, "1x1"), (4, "2x2"), (3, "1x3"), (2, "2x1"), (5, "5x1"), (6, "3x2"))


def check_on_meshes(cases, program, mpiexec, rows, columns, steps, pattern=VALUE):
    """Runs a program on one rank, then on meshes of threads and processes, where what matches
    `pattern` and the picture must be the same. Returns what it printed on one rank and on 2 x 2
    processes (or threads), and the picture's pixels."""
    size = ["--rows", rows, "--columns", columns, "--steps", steps]
    commands = {f"{mesh} threads": [program, "--ranks", ranks, "--mesh", mesh]
                for ranks, mesh in MESHES}
    if mpiexec:
        for ranks, mesh in (MESHES[1], MESHES[2], MESHES[3]):
            commands[f"{mesh} processes"] = [mpiexec, "-n", ranks, program, "--mesh", mesh]
    printed, pictures = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, command in commands.items():
            picture = pathlib.Path(folder) / f"{name}.ppm"
            printed[name] = run(*command, *size, "--picture", picture).stdout
            pictures[name] = picture.read_bytes() if picture.exists() else b""
    one = "1x1 threads"
    header = f"P6\n{columns} {rows}\n255\n".encode()
    cases.check("the picture has a pixel per element", pictures[one].startswith(header)
                and len(pictures[one]) == len(header) + 3 * rows * columns, printed[one])
    for name in list(commands)[1:]:
        cases.check(f"{name}: the same bits and picture",
                    pattern.findall(printed[name]) == pattern.findall(printed[one]) != []
                    and pictures[name] == pictures[one], printed[name])
    return printed[one], printed["2x2 processes" if mpiexec else "2x2 threads"], \
        pictures[one][len(header):]


def check_values(cases, printed, expected, tolerance):
    """The eight printed values are those of `expected`, a list of rows."""
    values = VALUE.findall(printed)
    cases.check("the values of a loop", len(values) == 8 and all(
        abs(float(value) - expected[int(i)][int(j)]) <= tolerance for i, j, value in values), printed)


def check_options(cases, program):
    name = pathlib.Path(program).name
    check_refusals(cases, program, [
        (["--mesh", "2"], f"{name}: --mesh is '2'; it must be two integers, as in 2x2"),
        (["--mesh", "2x3", "--ranks", 4],
         f"{name}: --mesh 2x3 does not match the number of ranks, 4"),
        (["--steps", "0"], f"{name}: --steps is '0'; it must be an integer of at least 1"),
        (["--color", "1"], f"{name}: unknown option '--color'; the options are --rows"),
    ])
