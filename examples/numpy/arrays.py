"""NumPy's arrays in a C++ library and back, without a copy, by ctypes alone.

    library = Library("libarrays.so")
    library.adopt(array)        # C++ reads and writes the array's memory
    numpy.from_dlpack(library)  # an array of C++'s memory
"""

import ctypes

python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
NAMES = [b"dltensor", b"dltensor_versioned"]
USED = [b"used_dltensor", b"used_dltensor_versioned"]


class Library:
    def __init__(self, path):
        self.calls = ctypes.CDLL(path)
        for name in ("adopt", "share", "share_versioned"):
            getattr(self.calls, name).restype = ctypes.c_void_p
        self.calls.adopt.argtypes = [ctypes.c_void_p, ctypes.c_bool]
        self.calls.make.argtypes = [ctypes.c_long, ctypes.c_long]
        self.calls.error_message.restype = ctypes.c_char_p
        self.read_only = False

    def adopt(self, array):
        """The address of the array's elements in C++, which holds the array until its release."""
        try:
            capsule = array.__dlpack__(max_version=(1, 0))
        except TypeError:  # before NumPy 2.1
            capsule = array.__dlpack__()
        versioned = b"versioned" in repr(capsule).encode()
        managed = python.PyCapsule_GetPointer(capsule, NAMES[versioned])
        address = self.calls.adopt(managed, versioned)
        if address is None:
            raise BufferError(self.calls.error_message().decode())
        python.PyCapsule_SetName(capsule, USED[versioned])  # C++ owns it now
        return address

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, *, max_version=None, **_):
        versioned = max_version is not None and max_version[0] >= 1
        managed = self.calls.share_versioned(self.read_only) if versioned else self.calls.share()
        return python.PyCapsule_New(managed, NAMES[versioned], None)
