// The library cleave-compiled.
#include <cleave/compiled.hpp>
