#!/usr/bin/env python3
"""examples/kmeans gives scikit-learn's numbers on every mesh, threads or processes, and refuses bad
input in one line.

usage: kmeans.py PROGRAM DATA_FOLDER [MPIEXEC]

The expected numbers are printed by tests/reference/kmeans_sklearn.py.
"""

import array
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import Cases

POINTS, FEATURES, CLUSTERS = 1797, 64, 10
ITERATIONS = [  # inertia, points that moved
    (2220380.000000, 1797), (1348233.007760, 369), (1280664.225087, 144), (1263409.798159, 97),
    (1251201.071335, 88), (1226790.125089, 130), (1184305.017965, 96), (1171998.972713, 42),
    (1169491.713425, 17), (1168424.927516, 8), (1168102.410166, 4), (1167990.172519, 2),
    (1167918.270056, 3), (1167859.384007, 0),
]
PURITY = 0.791319
OTHER_K = {1: (2, 2159057.291041), 3: (19, 1733031.676689), 40: (22, 796397.350868)}

ROW = re.compile(r"^ *(\d+) +(\d+\.\d+) +(\d+)  (.*)$", re.MULTILINE)


def run(command, **settings):
    return subprocess.run([str(word) for word in command], text=True, timeout=120,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=dict(os.environ, **settings))


def received(dp, tp):
    """The bytes that rank 0 receives per iteration: [n/dp, k] is summed over tp; [k, f/tp] sums, k
    counts and two numbers over dp. An all-reduce of n ranks receives 2 (n - 1) / n of its data."""
    def all_reduce(axis, size, elements):
        return [f"all_reduce {axis} {2 * elements * (size - 1) // size * 8} B"] if size > 1 else []
    rows, columns = -(-POINTS // dp), -(-FEATURES // tp)
    return ", ".join(all_reduce("tp", tp, rows * CLUSTERS)
                     + all_reduce("dp", dp, CLUSTERS * columns + CLUSTERS + 2)) or "nothing"


def check_numbers(cases, name, done, dp, tp):
    rows = ROW.findall(done.stdout)
    seen = done.stdout + done.stderr
    same = len(rows) == len(ITERATIONS) and all(
        abs(float(row[1]) - inertia) < 0.5001e-4 and int(row[2]) == moved
        for row, (inertia, moved) in zip(rows, ITERATIONS))
    cases.check(f"{name}: every iteration has the inertia and the moves of the reference",
                done.returncode == 0 and same, seen)
    cases.check(f"{name}: an iteration communicates two all-reduces and nothing else",
                bool(rows) and all(row[3] == received(dp, tp) for row in rows), seen)
    cases.check(f"{name}: the purity is that of the reference",
                f"purity {PURITY:.6f}\n" in done.stdout, seen)


def check_meshes(cases, program, data, mpiexec):
    for ranks in (1, 2, 3, 4, 7):
        for dp in (d for d in range(1, ranks + 1) if ranks % d == 0):
            mesh = f"{dp}x{ranks // dp}"
            done = run([program, "--data", data, "--mesh", mesh, "--ranks", ranks])
            check_numbers(cases, f"{mesh} threads", done, dp, ranks // dp)
            if mpiexec:
                processes = run([mpiexec, "-n", ranks, program, "--data", data, "--mesh", mesh])
                check_numbers(cases, f"{mesh} processes", processes, dp, ranks // dp)
                cases.check(f"{mesh}: threads and processes print the same, pictures included",
                            processes.stdout == done.stdout, processes.stdout)
    if not mpiexec:
        cases.skip("the same numbers under mpirun", "there is no mpirun")


def check_options(cases, program, data):
    for k, (iterations, inertia) in OTHER_K.items():
        done = run([program, "--data", data, f"--k={k}", "--ranks", 4])
        rows = ROW.findall(done.stdout)
        cases.check(f"k = {k} ends with the inertia of the reference",
                    len(rows) == iterations and abs(float(rows[-1][1]) - inertia) < 0.5001e-4,
                    done.stdout + done.stderr)
    done = run([program, "--data", data, "--iterations", 3, "--ranks", 2])
    cases.check("--iterations 3 ends after three", len(ROW.findall(done.stdout)) == 3, done.stdout)
    done = run([program, "--data", data, "--iterations", 3, "--ranks", 2, "--time"])
    cases.check("--time prints what an iteration takes",
                re.search(r"^time per iteration \d+\.\d{3} ms$", done.stdout, re.MULTILINE) is not None,
                done.stdout)
    done = run([program, "--data", data, "--ranks", 6])
    cases.check("without --mesh the ranks are arranged squarely", "dp=3 x tp=2" in done.stdout,
                done.stdout)
    with tempfile.TemporaryDirectory() as scratch:
        alone = pathlib.Path(scratch) / "points.npy"
        alone.write_bytes(pathlib.Path(data).read_bytes())
        done = run([program, "--data", alone, "--ranks", 2])
        cases.check("points without labels have no purity",
                    done.returncode == 0 and "purity" not in done.stdout, done.stdout)


def npy(descr, fortran_order, shape, elements):
    """An .npy file of version 1."""
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran_order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + elements


def check_types(cases, program, data):
    """The digits, which are integers up to 16, in other element types and orders."""
    values = array.array("f", data.read_bytes()[-POINTS * FEATURES * 4:])
    columns = [values[i * FEATURES + j] for j in range(FEATURES) for i in range(POINTS)]
    with tempfile.TemporaryDirectory() as scratch:
        points = pathlib.Path(scratch) / "points.npy"
        (points.parent / "labels.npy").write_bytes((data.parent / "labels.npy").read_bytes())
        for descr, code in (("<f8", "d"), ("|u1", "B"), ("|i1", "b"), ("<i4", "i"), ("<i8", "q")):
            for fortran_order, ordered in ((False, values), (True, columns)):
                whole = ordered if code == "d" else map(int, ordered)
                points.write_bytes(npy(descr, fortran_order, (POINTS, FEATURES),
                                       array.array(code, whole).tobytes()))
                done = run([program, "--data", points, "--mesh", "2x1", "--ranks", 2])
                order = "Fortran" if fortran_order else "C"
                check_numbers(cases, f"{descr} in {order} order", done, 2, 1)


def check_refusals(cases, program, data, mpiexec):
    labels = data.parent / "labels.npy"
    with tempfile.TemporaryDirectory() as scratch:
        short = pathlib.Path(scratch) / "short.npy"
        short.write_bytes(data.read_bytes()[:1000])
        complex_points = pathlib.Path(scratch) / "complex.npy"
        complex_points.write_bytes(npy("<c8", False, (1, 2), bytes(16)))
        refusals = [
            (["--speed", "9"], "kmeans: unknown option '--speed'; the options are --data FILE.npy, "
             "--labels FILE.npy, --k K, --mesh AxB, --ranks N, --iterations N"),
            (["more"], "kmeans: unknown option 'more'; the options are --data"),
            (["--data"], "kmeans: --data requires a value"),
            (["--data", "/nowhere.npy"],
             "kmeans: load_npy: '/nowhere.npy' cannot be opened: No such file or directory"),
            (["--data", labels], f"kmeans: load_npy: '{labels}' has 1 dimensions [1797], not 2"),
            (["--data", complex_points], f"kmeans: load_npy: '{complex_points}' has elements of type "
             "complex64, which cannot be converted to float64"),
            (["--data", short], f"kmeans: load_npy: '{short}' is truncated: it has 872 of the "
             "460032 bytes of its elements"),
            (["--labels", "/nowhere.npy"],
             "kmeans: load_npy: '/nowhere.npy' cannot be opened: No such file or directory"),
            (["--k", "0"], "kmeans: --k is '0'; it must be an integer of at least 1"),
            (["--k", "-3"], "kmeans: --k is '-3'; it must be an integer of at least 1"),
            (["--k", "ten"], "kmeans: --k is 'ten'; it must be an integer of at least 1"),
            (["--k", "1798"], f"kmeans: --k 1798 is more than the 1797 points of {data}"),
            *((["--mesh", mesh], f"kmeans: --mesh is '{mesh}'; it must be two integers, as in 2x2")
              for mesh in ("4", "2x", "x2", "0x4", "2x2x1", "-2x-2")),
            (["--mesh", "2x3"],
             "kmeans: --mesh 2x3 does not match the number of ranks, 4"),
            (["--iterations", "0"],
             "kmeans: --iterations is '0'; it must be an integer of at least 1"),
        ]
        for options, message in refusals:
            done = run([program, "--data", data, "--ranks", 4, *options])
            lines = done.stderr.splitlines()
            cases.check(f"{' '.join(map(str, options))} is refused in one line, exit code 2",
                        done.returncode == 2 and len(lines) == 1 and not done.stdout
                        and lines[0].startswith(message), f"{done.returncode}: {done.stderr}")
    done = run([program, "--data", data, "--ranks", "none"])
    cases.check("--ranks none is refused in one line, exit code 2",
                done.returncode == 2 and done.stderr.startswith("run: --ranks is 'none'")
                and len(done.stderr.splitlines()) == 1, f"{done.returncode}: {done.stderr}")
    if mpiexec:
        done = run([mpiexec, "-n", 2, program, "--data", "/nowhere.npy"])
        cases.check("under mpirun a missing file is reported once, exit code 2",
                    done.returncode == 2 and done.stderr.count("'/nowhere.npy' cannot be opened") == 1,
                    f"{done.returncode}: {done.stderr}")


def main():
    program, data = sys.argv[1], pathlib.Path(sys.argv[2]) / "digits.npy"
    mpiexec = sys.argv[3] if len(sys.argv) > 3 else ""
    cases = Cases()
    check_meshes(cases, program, data, mpiexec)
    check_options(cases, program, data)
    check_types(cases, program, data)
    check_refusals(cases, program, data, mpiexec)
    sys.exit(cases.finish())


if __name__ == "__main__":
    main()
