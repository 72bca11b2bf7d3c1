// Defines the compiled mode in a program that links no library of it.
#include <cleave/compiled.hpp>
