#!/usr/bin/env python3
"""examples/numpy shares memory with NumPy, and with PyTorch if it is installed, in both directions.

usage: numpy_arrays.py LIBRARY
"""

import gc
import pathlib
import sys
import weakref

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT / "support")
from cases import Cases
from interpreter import require

require("numpy")

import numpy

sys.path.insert(1, str(ROOT.parent / "examples" / "numpy"))
from arrays import Library


class Owner(numpy.ndarray):
    """An array that a weak reference can follow."""


def address(array):
    return array.__array_interface__["data"][0]


def refusal(library, array):
    try:
        library.adopt(array)
    except BufferError as error:
        return str(error)
    return ""


def main(path):
    cases = Cases()
    library = Library(path)

    whole = numpy.zeros((6, 8)).view(Owner)
    part = whole[1:5:2, 7:1:-3]  # [2, 2], with an offset, a step and a negative stride
    cases.check("a view of NumPy has its address in C++", library.adopt(part) == address(part))
    library.calls.fill()
    expected = numpy.zeros((6, 8))
    expected[1, 7], expected[1, 4], expected[3, 7], expected[3, 4] = 0, 1, 10, 11
    cases.check("C++ writes to exactly its elements", (whole == expected).all(), str(whole))
    follow = weakref.ref(whole)
    del whole, part
    gc.collect()
    cases.check("C++ holds the array", follow() is not None)
    library.calls.release()
    gc.collect()
    cases.check("the array is freed when C++ releases it", follow() is None)

    library.calls.make(3, 5)
    library.calls.fill()
    given = numpy.from_dlpack(library)
    again = numpy.from_dlpack(library)
    rows, columns = numpy.indices((5, 3))
    cases.check("NumPy has the elements and strides of C++'s view",
                given.shape == (5, 3) and given.strides == (8, 40)
                and (given == 10 * columns + rows).all(), str(given))
    cases.check("two arrays of it have one address", address(given) == address(again))
    if given.flags.writeable:  # since NumPy 2
        cases.check("C++ adopts its own memory again", library.adopt(given.T) == address(given))
    library.calls.release()
    del again
    gc.collect()
    cases.check("NumPy holds the memory", (given == 10 * columns + rows).all(), str(given))

    cases.check("other element types are refused with both types",
                "(2, 32 bits, 1 lanes), not float64" in refusal(library, numpy.zeros((2, 2), "f4")))
    cases.check("other numbers of dimensions are refused",
                "the array has 1 dimensions, not 2" in refusal(library, numpy.zeros(3)))
    if numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0":
        locked = numpy.zeros((2, 2))
        locked.flags.writeable = False
        cases.check("read-only arrays are refused", "read-only" in refusal(library, locked))
        library.calls.make(2, 2)
        library.read_only = True
        cases.check("NumPy sees what C++ says is read-only",
                    not numpy.from_dlpack(library).flags.writeable)
        library.read_only = False
        cases.check("NumPy may write to the rest", numpy.from_dlpack(library).flags.writeable)

    try:
        import torch
    except ImportError:
        return cases.finish()
    tensor = torch.zeros(3, 4, dtype=torch.float64).T
    cases.check("PyTorch's tensor has its address in C++",
                library.adopt(tensor) == tensor.data_ptr())
    library.calls.fill()
    cases.check("PyTorch sees what C++ writes", tensor[3, 2].item() == 32)
    back = torch.from_dlpack(library)
    cases.check("PyTorch gets C++'s address", back.data_ptr() == tensor.data_ptr())
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
