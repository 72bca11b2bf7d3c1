"""Fourier transforms of cubes of doubles there and back by dtFFT, whose licence is the GPL: in a
process of its own. Prints what `bench/fft seconds` prints.

usage: mpirun -n N PYTHON fft_by_dtfft.py
"""

import ctypes
import statistics
import sys

import dtfft
import numpy
from mpi4py import MPI

# of Open MPI, a pointer; mpi4py before 4 has no `handle`
WORLD = ctypes.c_void_p.from_address(MPI._addressof(MPI.COMM_WORLD)).value


def stop_all(*error):
    """Else the other processes would wait for this one."""
    sys.__excepthook__(*error)
    sys.stderr.flush()
    MPI.COMM_WORLD.Abort(1)


sys.excepthook = stop_all
PLANS = {"c2c": dtfft.PlanC2C, "r2c": dtfft.PlanR2C}


def seconds(make, n, turns):
    plan = make([n, n, n], WORLD, executor=dtfft.Executor.FFTW3)
    count = plan.alloc_size
    x, y, aux = (plan.get_ndarray(size) for size in (count, count, plan.aux_size))
    start = numpy.random.default_rng(MPI.COMM_WORLD.rank).standard_normal(count)
    x[:] = start
    times = []
    for _ in range(turns + 1):
        MPI.COMM_WORLD.barrier()
        begin = MPI.Wtime()
        plan.execute(x, y, dtfft.Execute.FORWARD, aux)
        plan.execute(y, x, dtfft.Execute.BACKWARD, aux)
        MPI.COMM_WORLD.barrier()
        times.append(MPI.Wtime() - begin)
        x /= n**3
    used = int(numpy.prod(plan.local_sizes[1]))
    assert numpy.abs(x[:used] - start[:used]).max() < 1e-12, "the transform there and back differs"
    return statistics.median(times[1:])


for n in (128, 256):
    for kind, make in PLANS.items():
        result = seconds(make, n, 3 if n > 128 else 9)
        if MPI.COMM_WORLD.rank == 0:
            print(f"{kind}_{n} {result:.6f}", flush=True)
