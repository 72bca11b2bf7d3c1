// The library cleave-c: the functions of cleave.h.
#include <cleave/interop/mpi/c_interface.hpp>
