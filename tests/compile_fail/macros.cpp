// Macros that are defined before cleave is included. <complex.h>, which defines I in C, may be.
#include <complex.h>

#ifdef macro_like_a_template_parameter  // says within 2 kB: cleave: undefine the macro N before including cleave, or include cleave first
#define N 8
#endif

#ifdef macro_like_a_type  // says within 2 kB: cleave: undefine the macro T before including cleave, or include cleave first
#define T float
#endif

#ifdef macro_like_a_matrix  // says within 2 kB: cleave: undefine the macro M before including cleave, or include cleave first
#define M 4
#endif

#ifdef macro_like_a_variable  // says within 2 kB: cleave: undefine the macro x before including cleave, or include cleave first
#define x 1
#endif

#include <cleave/cleave.hpp>

#define N 8  // afterwards they may be defined
#define T float

cleave::Tensor<T, 2> control(const cleave::Tensor<T, 2>& a) { return matmul(a, a) * N; }
