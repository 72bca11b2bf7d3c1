"""Distributed arrays of an mpi4py program: an array whose parts the ranks hold, under placements.

    from mpi4py import MPI
    import cleave

    mesh = cleave.Mesh(MPI.COMM_WORLD, [2, 2])
    x = mesh.zeros([1000, 800], "float64", "S0,S1")  # a block of rows and columns per rank
    x.local[...] = 1                                 # a NumPy array of this rank's elements
    y = x.redistribute("R,S1")
    whole = y.full()                                 # a NumPy array of everything, on every rank

Placements are texts, one per axis of the mesh: R, S0, B0, C0:64, O1:0 (cleave.h explains them). Arrays
are in row-major order. All functions but `zeros`, `from_local` and properties are collective. A call
that fails raises `cleave.Error`.

Loads libcleave-c: the file that CLEAVE_LIBRARY names, or else the system's.
"""

import ctypes
import ctypes.util
import os

import numpy

__all__ = ["Array", "Error", "Mesh", "solve", "version"]


class Error(RuntimeError):
    """A call of cleave that failed, with operation, shapes, placements, mesh and rank."""


def _load():
    name = os.environ.get("CLEAVE_LIBRARY") or ctypes.util.find_library("cleave-c")
    if name is None:
        raise ImportError("cleave: libcleave-c was not found; CLEAVE_LIBRARY=.. names the file, which "
                          "Meson builds and installs with -Dinstall_compiled=c")
    library = ctypes.CDLL(name)
    extents, handle = ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p
    result, text, number = ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p, ctypes.c_int
    for function, types in {
            "mesh_create": [number, number, extents, result],
            "mesh_coordinate": [handle, extents],
            "array_create": [handle, text, number, extents, text, result],
            "array_adopt": [handle, text, number, extents, text, ctypes.c_void_p, result],
            "local_extents": [handle, number, extents, text, extents],
            "array_shape": [handle, extents],
            "array_local_extents": [handle, extents],
            "array_local_begin": [handle, extents],
            "array_redistribute": [handle, text, result],
            "array_full": [handle, ctypes.c_void_p],
            "array_fft": [handle, number, result],
            "array_solve": [handle, handle, number, result]}.items():
        getattr(library, "cleave_" + function).argtypes = types
    for function, types, returned in [("error", [], text), ("version", [], number),
                                      ("array_dims", [handle], number),
                                      ("array_data", [handle], ctypes.c_void_p),
                                      ("array_type", [handle], text),
                                      ("array_placements", [handle], text),
                                      ("array_free", [handle], None), ("mesh_free", [handle], None)]:
        found = getattr(library, "cleave_" + function)
        found.argtypes, found.restype = types, returned
    return library


_library = _load()


def _call(function, *arguments):
    if getattr(_library, "cleave_" + function)(*arguments) != 0:
        raise Error(_library.cleave_error().decode())


def _made(function, *arguments):
    """The handle that a call makes."""
    handle = ctypes.c_void_p()
    _call(function, *arguments, ctypes.byref(handle))
    return handle


def _numbers(values):
    return (ctypes.c_int64 * len(values))(*values)


def version():
    """10000 major + 100 minor + patch."""
    return _library.cleave_version()


class Mesh:
    """All ranks of an mpi4py communicator along axes, row-major. `extents`: ranks along each."""

    def __init__(self, communicator, extents):
        self.extents = tuple(extents)
        self._handle = _made("mesh_create", communicator.py2f(), len(self.extents),
                             _numbers(self.extents))

    def __del__(self):
        if hasattr(self, "_handle"):
            _library.cleave_mesh_free(self._handle)

    @property
    def coordinate(self):
        """This rank's position, a number per axis."""
        found = _numbers([0] * len(self.extents))
        _call("mesh_coordinate", self._handle, found)
        return tuple(found)

    def zeros(self, shape, dtype, placements):
        """An array of zeros. `shape`: extents of the whole array."""
        handle = _made("array_create", self._handle, numpy.dtype(dtype).name.encode(), len(shape),
                       _numbers(shape), placements.encode())
        return Array(handle, self)

    def local_extents(self, shape, placements):
        """The extents of this rank's part of an array."""
        found = _numbers([0] * len(shape))
        _call("local_extents", self._handle, len(shape), _numbers(shape), placements.encode(), found)
        return tuple(found)

    def from_local(self, part, shape, placements):
        """The array of the ranks' parts. Shares the memory of this rank's part, a C-contiguous NumPy
        array; what DLPack or the buffer protocol offer becomes one by `numpy.from_dlpack`."""
        if not isinstance(part, numpy.ndarray) or not part.flags.c_contiguous:
            raise Error("from_local: takes a C-contiguous NumPy array; numpy.ascontiguousarray(part) "
                        "is a copy that is")
        expected = self.local_extents(shape, placements)
        if part.shape != expected:
            raise Error(f"from_local: the part has the extents {part.shape}, but this rank holds "
                        f"{expected} of {tuple(shape)} under {placements}")
        handle = _made("array_adopt", self._handle, part.dtype.name.encode(), len(shape),
                       _numbers(shape), placements.encode(), part.ctypes.data)
        return Array(handle, self, part)


class Array:
    """A distributed array. Made by a Mesh, or by a function of another array."""

    def __init__(self, handle, mesh, part=None):
        self._handle, self.mesh = handle, mesh
        self._part = part  # keeps adopted memory

    def __del__(self):
        _library.cleave_array_free(self._handle)

    def _extents(self, function):
        found = _numbers([0] * _library.cleave_array_dims(self._handle))
        _call(function, self._handle, found)
        return tuple(found)

    @property
    def shape(self):
        """The extents of the whole array."""
        return self._extents("array_shape")

    @property
    def dtype(self):
        return numpy.dtype(_library.cleave_array_type(self._handle).decode())

    @property
    def placements(self):
        return _library.cleave_array_placements(self._handle).decode()

    @property
    def local_begin(self):
        """The global index of the first local element; an Error under C."""
        return self._extents("array_local_begin")

    @property
    def local(self):
        """This rank's elements, as a NumPy array that shares their memory."""
        extents = self._extents("array_local_extents")
        count = int(numpy.prod(extents, dtype=numpy.int64))
        if count == 0:
            return numpy.empty(extents, self.dtype)
        memory = (ctypes.c_byte * (count * self.dtype.itemsize)).from_address(
            _library.cleave_array_data(self._handle))
        memory.owner = self  # as long as the NumPy array
        return numpy.frombuffer(memory, self.dtype).reshape(extents)

    def redistribute(self, placements):
        """A copy under other placements."""
        return Array(_made("array_redistribute", self._handle, placements.encode()), self.mesh)

    def full(self):
        """The whole array, as a NumPy array on every rank."""
        whole = numpy.empty(self.shape, self.dtype)
        _call("array_full", self._handle, whole.ctypes.data)
        return whole

    def fft(self):
        """numpy.fft.fftn of the whole array, placed as this one. Complex, one to three dimensions."""
        return Array(_made("array_fft", self._handle, 0), self.mesh)

    def ifft(self):
        """numpy.fft.ifftn of the whole array, placed as this one."""
        return Array(_made("array_fft", self._handle, 1), self.mesh)


def solve(a, b):
    """x with a x = b, by ScaLAPACK. a: [n, n], b: [n, k]; placed as b."""
    return Array(_made("array_solve", a._handle, b._handle, 0), b.mesh)
