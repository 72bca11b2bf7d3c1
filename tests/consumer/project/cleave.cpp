// Where the compiled mode is compiled, in a program that links no library of it.
#include <cleave/compiled.hpp>
