# shellcheck shell=sh
# Sourced by bench/run.sh: examples/kmeans against scikit-learn, which is installed from PyPI into a
# virtual environment in the build directory. If that fails, the benchmark reports it and prints
# only the lines that need no counterpart.
need python3-venv
configure build-bench -Dtests=disabled -Dexamples=enabled >&2
ninja -C build-bench examples/kmeans/kmeans >&2
python=build-bench/venv/bin/python
if ! "$python" -c 'import numpy, sklearn' 2>/dev/null; then
  python3 -m venv build-bench/venv >&2 &&
    "$python" -m pip install --quiet scikit-learn numpy >&2 ||
    echo "scikit-learn cannot be installed: omitting kmeans.iteration.vs_sklearn" >&2
fi
"$python" -c 'import numpy' 2>/dev/null || python=python3
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
  "$python" bench/kmeans/compare.py build-bench/examples/kmeans/kmeans
