#!/usr/bin/env python3
"""k-means as a user runs it, against scikit-learn in the same run.

usage: compare.py PROGRAM

200,000 points of 64 features in float64, 10 clusters, Lloyd's algorithm, the first ten points as the
initial centroids. Both use one thread. The time of an iteration of scikit-learn is the difference
between 22 iterations and 2, divided by 20, which excludes its setup. Prints

    kmeans.iteration.vs_sklearn   scikit-learn's time of an iteration / the program's on one rank
    kmeans.2x1.efficiency         one rank's time of an iteration / (2 x that of two)

as medians of interleaved runs, after comparing the inertias.
"""

import array
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

POINTS, FEATURES, CLUSTERS, FIRST, LAST, RUNS = 200_000, 64, 10, 2, 22, 5

ROW = re.compile(r"^ *(\d+) +(\d+\.\d+) +(\d+)  ", re.MULTILINE)
TIME = re.compile(r"^time per iteration (\S+) ms$", re.MULTILINE)


def write_points(path):
    """Uniform random numbers, which take many more iterations than are timed. Needs no NumPy."""
    dictionary = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({POINTS}, {FEATURES}), }}"
    dictionary += " " * (-(10 + len(dictionary) + 1) % 64) + "\n"
    draw = random.Random(7).random
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(dictionary).to_bytes(2, "little"))
        file.write(dictionary.encode())
        for _ in range(64):
            array.array("d", (draw() for _ in range(POINTS * FEATURES // 64))).tofile(file)


def iteration_of_program(program, data, ranks):
    """Seconds of an iteration, and the inertia after as many iterations as scikit-learn."""
    done = subprocess.run([program, "--data", data, "--k", str(CLUSTERS), "--ranks", str(ranks),
                           "--mesh", f"{ranks}x1", "--iterations", str(LAST + 1), "--time"],
                          text=True, stdout=subprocess.PIPE, check=True)
    return float(TIME.search(done.stdout)[1]) / 1e3, float(ROW.findall(done.stdout)[-1][1])


def iteration_of_sklearn(points):
    from sklearn.cluster import KMeans

    def fit(iterations):
        model = KMeans(CLUSTERS, init=points[:CLUSTERS], n_init=1, algorithm="lloyd", tol=0,
                       max_iter=iterations)
        start = time.perf_counter()
        model.fit(points)
        if model.n_iter_ != iterations:
            sys.exit(f"scikit-learn ended after {model.n_iter_} iterations, not {iterations}")
        return time.perf_counter() - start, model.inertia_

    before, (after, inertia) = fit(FIRST)[0], fit(LAST)
    return (after - before) / (LAST - FIRST), inertia


def main():
    import warnings
    warnings.simplefilter("ignore")  # about missing convergence
    program = sys.argv[1]
    points = None
    with tempfile.TemporaryDirectory() as scratch:
        data = str(pathlib.Path(scratch) / "points.npy")
        write_points(data)
        try:
            import numpy
            import sklearn
            print(f"scikit-learn {sklearn.__version__}", file=sys.stderr)
            points = numpy.load(data)
        except ImportError:
            print("scikit-learn is not installed: omitting kmeans.iteration.vs_sklearn",
                  file=sys.stderr)
        ones, twos, theirs = [], [], []
        for _ in range(RUNS):
            seconds, inertia = iteration_of_program(program, data, 1)
            ones.append(seconds)
            twos.append(iteration_of_program(program, data, 2)[0])
            if points is None:
                continue
            seconds, expected = iteration_of_sklearn(points)
            theirs.append(seconds)
            if abs(inertia - expected) > 1e-9 * expected:
                sys.exit(f"the inertia is {inertia}, scikit-learn's {expected}")
    if theirs:
        ratio = statistics.median(theirs) / statistics.median(ones)
        print(f"kmeans.iteration.vs_sklearn {ratio:.3f} ratio")
    efficiency = statistics.median(ones) / (2 * statistics.median(twos))
    print(f"kmeans.2x1.efficiency {efficiency:.3f} ratio")


if __name__ == "__main__":
    main()
