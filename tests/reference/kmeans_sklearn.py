#!/usr/bin/env python3
"""The numbers that examples/kmeans must reproduce, from two implementations independent of cleave.

scikit-learn's KMeans (algorithm "lloyd", no tolerance) and, to see every iteration, Lloyd's
algorithm in a few lines of NumPy. Both start from the first k points and compute in float64.

    pip install scikit-learn        # or: apt-get install python3-sklearn
    python3 tests/reference/kmeans_sklearn.py [k]
"""
import pathlib
import sys

import numpy as np
from sklearn.cluster import KMeans

DATA = pathlib.Path(__file__).resolve().parents[2] / "examples" / "kmeans"


def lloyd(points, k):
    """Yields (inertia, moved points, labels) of each iteration until no point moves."""
    centroids, labels = points[:k].copy(), None
    while True:
        distances = ((points[:, None, :] - centroids) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)  # the first of equal ones
        moved = len(points) if labels is None else int((nearest != labels).sum())
        labels = nearest
        yield distances.min(axis=1).sum(), moved, labels
        if moved == 0:
            return
        for j in range(k):
            if (labels == j).any():  # a centroid without points does not move
                centroids[j] = points[labels == j].mean(axis=0)


def purity(labels, digits):
    return sum(np.bincount(digits[labels == j]).max() for j in np.unique(labels)) / len(digits)


def main():
    k = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    points = np.load(DATA / "digits.npy").astype(np.float64)
    digits = np.load(DATA / "labels.npy")

    for i, (inertia, moved, labels) in enumerate(lloyd(points, k), 1):
        print(f"numpy   iteration {i:3d}  inertia {inertia:.6f}  moved {moved}")

    model = KMeans(k, init=points[:k], n_init=1, algorithm="lloyd", tol=0, max_iter=1000)
    model.fit(points)
    print(f"sklearn iterations {model.n_iter_}  inertia {model.inertia_:.6f}")
    print("points of each cluster", np.bincount(model.labels_, minlength=k).tolist())
    print(f"purity {purity(model.labels_, digits):.6f}")
    print("labels equal", bool((labels == model.labels_).all()))


if __name__ == "__main__":
    main()
