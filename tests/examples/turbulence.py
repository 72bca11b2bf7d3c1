#!/usr/bin/env python3
"""examples/turbulence: vortices of Taylor and Green decay in a plane as they should, and become in a
box what sums over all pairs of modes give; energy is conserved without viscosity, to the order of
steps in time. Bits, pictures and checkpoints do not depend on the mesh, which may change when a run
is resumed. The same program by hand with FFTW-MPI computes the same flow.

usage: turbulence.py PROGRAM [MPIEXEC [BY_HAND]]
"""

import itertools
import math
import pathlib
import re
import struct
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases
from programs import check_refusals, run

STEP = re.compile(r"^step +(\d+)  energy (\S+)  enstrophy (\S+)", re.MULTILINE)
SHELL = re.compile(r"^energy\((\d+)\) = (\S+)$", re.MULTILINE)
BOX = ["--layers", 6, "--size", 10, "--every", 4, "--dt", 0.05]
MESHES = ((2, "2x1"), (3, "1x3"), (4, "2x2"), (5, "5x1"), (4, "4x1"))


def steps(text):
    """(step, energy, enstrophy) of each line of progress."""
    return [(int(n), float(e), float(w)) for n, e, w in STEP.findall(text)]


def check_plane(cases, program):
    """Energy falls as exp(-4 ν t); vorticity is twice as large as velocity there and then."""
    text = run(program, "--size", 12, "--steps", 40, "--every", 20, "--dt", 0.02, "--start",
               "taylor-green", "--viscosity", 0.2, "--ranks", 3).stdout
    lines = steps(text)
    cases.check("a plane of vortices decays as exp(-4 ν t)", len(lines) == 2 and all(
        abs(energy - 0.25 * math.exp(-4 * 0.2 * 0.02 * n)) < 1e-10
        and abs(enstrophy - 2 * energy) < 1e-12 for n, energy, enstrophy in lines), text)


def slope_by_sums(u, viscosity):
    """P (u x (i k x u)) - viscosity k² u, the product by a sum over all pairs of modes."""
    def cross(a, b):
        return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]

    w = {k: cross([1j * x for x in k], v) for k, v in u.items()}
    result = {}
    for k in u:
        f = [0, 0, 0]
        for p, v in u.items():
            q = tuple(a - b for a, b in zip(k, p))
            if q in w:
                f = [a + b for a, b in zip(f, cross(v, w[q]))]
        k2 = sum(x * x for x in k)
        along = sum(x * a for x, a in zip(k, f)) / max(k2, 1)
        result[k] = [a - x * along - viscosity * k2 * v if k2 else 0
                     for a, x, v in zip(f, k, u[k])]
    return result


def check_box(cases, program):
    """Three steps of 8 x 8 x 8 elements, of whose modes the 2/3 rule keeps |k| <= 2."""
    viscosity, dt, count = 0.05, 0.2, 3
    u = {k: [0, 0, 0] for k in itertools.product(range(-2, 3), repeat=3)}
    for a, b, c in itertools.product((-1, 1), repeat=3):  # cos x sin y cos z, -cos x cos y sin z
        u[a, b, c] = [0, -1j * b / 8, 1j * c / 8]

    def plus(x, factor, y):
        return {k: [a + factor * b for a, b in zip(x[k], y[k])] for k in x}

    for _ in range(count):
        v, total = u, u
        for ahead, weight in ((0.5, 1), (0.5, 2), (1, 2), (0, 1)):
            slope = slope_by_sums(v, viscosity)
            total = plus(total, dt / 6 * weight, slope)
            v = plus(u, ahead * dt, slope)
        u = total
    text = run(program, "--layers", 8, "--size", 8, "--steps", count, "--dt", dt, "--start",
               "taylor-green", "--viscosity", viscosity, "--ranks", 2).stdout
    energies = {k: sum(abs(a) ** 2 for a in v) / 2 for k, v in u.items()}
    enstrophy = sum(sum(x * x for x in k) * e for k, e in energies.items())
    shells = {r: sum(e for k, e in energies.items() if round(math.hypot(*k)) == r)
              for r in range(4)}
    [(_, found_energy, found_enstrophy)] = steps(text)
    cases.check("a box has the energies of sums over pairs of modes",
                min(shells[2], shells[3]) > 1e-5 and abs(found_energy - sum(shells.values())) < 1e-14
                and abs(found_enstrophy - enstrophy) < 1e-14 and len(SHELL.findall(text)) == 2
                and all(abs(float(value) - shells[int(shell)]) < 1e-14
                        for shell, value in SHELL.findall(text)), f"{text}\n{shells} {enstrophy}")


def check_energy(cases, program):
    """Without viscosity, and with half the step, the change of energy is 2⁵ times as small."""
    changes = []
    for count in (20, 40, 80):
        text = run(program, *BOX, "--steps", count, "--every", count, "--viscosity", 0, "--dt",
                   3 / count).stdout
        changes.append(abs(steps(text)[-1][1] - 0.5))
    cases.check("energy is conserved to the order of steps in time",
                all(26 < a / b < 36 for a, b in zip(changes, changes[1:])), str(changes))


def rows_of(png):
    """The size and the pixels of a picture, all of whose checks must hold."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at:at + 8])
        data = png[at + 8:at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length:at + 12 + length])[0] == zlib.crc32(
            name + data)
        chunks[name] = data
        at += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    pixels = zlib.decompress(chunks[b"IDAT"])
    return [pixels[(width + 1) * i + 1:(width + 1) * (i + 1)] for i in range(height)]


def outcome(folder, name, command, count):
    """What a run prints for all its steps, its pictures and its curve."""
    picture, curve = folder / name, folder / f"{name}.svg"
    text = run(*command, *BOX, "--steps", count, "--picture", picture, "--spectrum", curve).stdout
    files = {path.name: path.read_bytes() for path in sorted(picture.glob("*.png"))}
    return STEP.findall(text) + SHELL.findall(text), files, \
        curve.read_text() if curve.exists() else text


def check_meshes(cases, program, mpiexec):
    commands = {f"{mesh} threads": [program, "--ranks", n, "--mesh", mesh] for n, mesh in MESHES}
    for n, mesh in MESHES[:3] if mpiexec else ():
        commands[f"{mesh} processes"] = [mpiexec, "-n", n, program, "--mesh", mesh]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        one = outcome(folder, "one", [program, "--ranks", 1], 12)
        cases.check("a line and a picture every 4 steps, a curve of wave numbers",
                    len(one[0]) == 3 + 3 and list(one[1]) == ["step-12.png", "step-4.png", "step-8.png"]
                    and "polyline" in one[2] and "wave number" in one[2], str(one))
        rows = rows_of(one[1]["step-4.png"])
        cases.check("the picture shows vorticity of both signs", len(rows) == len(rows[0]) == 10
                    and min(map(min, rows)) < 110 and max(map(max, rows)) > 145, str(rows))
        for name, command in commands.items():
            cases.check(f"{name}: the same bits, pictures and curve",
                        outcome(folder, name, command, 12) == one, name)
        saved = ["--resume", folder / "saved"]
        first = outcome(folder, "first", [program, "--ranks", 2, *saved], 4)
        then = outcome(folder, "then", [*commands["2x2 threads"], *saved], 8)
        last = outcome(folder, "last", [*list(commands.values())[-1], *saved], 12)
        cases.check("resumed on two other meshes: the same bits",
                    first[0][0] == one[0][0] and then[0][0] == one[0][1] and last[0] == one[0][2:]
                    and {**first[1], **then[1], **last[1]} == one[1], f"{first}{then}{last}")


def check_by_hand(cases, program, mpiexec, by_hand):
    words = ["--layers", 9, "--size", 12, "--steps", 6, "--every", 3, "--dt", 0.1]
    theirs = run(mpiexec, "-n", 3, by_hand, *words).stdout
    ours = run(program, *words, "--start", "taylor-green", "--ranks", 2).stdout
    cases.check("by hand: the same energies", len(steps(theirs)) == 2 and all(
        a[0] == b[0] and abs(a[1] - b[1]) < 1e-14 and abs(a[2] - b[2]) < 1e-13
        for a, b in zip(steps(theirs), steps(ours), strict=True)), theirs + ours)


def main(program, mpiexec=None, by_hand=None):
    cases = Cases()
    check_plane(cases, program)
    check_box(cases, program)
    check_energy(cases, program)
    check_meshes(cases, program, mpiexec)
    if by_hand:
        check_by_hand(cases, program, mpiexec, by_hand)
    check_refusals(cases, program, [
        (["--mesh", "2"], "turbulence: --mesh is '2'; it must be two integers, as in 2x2"),
        (["--mesh", "2x3", "--ranks", 4],
         "turbulence: --mesh 2x3 does not match the number of ranks, 4"),
        (["--viscosity", "-1"], "--viscosity is '-1'; it must be a number of at least 0"),
        (["--start", "jet"], "turbulence: unknown option '--start jet'; the options are --size"),
    ])
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
