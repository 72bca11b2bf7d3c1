// A library that shares arrays with NumPy, without a copy: arrays.py calls it.
#include <string>

#include <cleave/interop/dlpack.hpp>

using namespace cleave;

static Tensor<double, 2> x({0, 0});
static std::string message;

extern "C" {

/// Takes over a managed tensor. Returns the address of its elements; null: see error_message.
double* adopt(void* managed, bool versioned) try {
  if (versioned)
    x = dlpack::from_dlpack<double, 2>(static_cast<dlpack::ManagedVersioned*>(managed));
  else x = dlpack::from_dlpack<double, 2>(static_cast<dlpack::Managed*>(managed));
  return x.data();
} catch (const Error& error) {
  message = error.what();
  return nullptr;
}
const char* error_message() { return message.c_str(); }

/// x[i, j] = 10 i + j, in new memory or in that of `adopt`.
void make(long rows, long columns) { x = Tensor<double, 2>({rows, columns}); }
void fill() {
  for (index_t i = 0; i < x.extent(0); ++i)
    for (index_t j = 0; j < x.extent(1); ++j) x(i, j) = double(10 * i + j);
}

/// A managed tensor of the transpose of x.
void* share() { return dlpack::to_dlpack<dlpack::Managed>(x.transpose(0, 1)); }
void* share_versioned(bool read_only) {
  return dlpack::to_dlpack(x.transpose(0, 1), {.read_only = read_only});
}
void release() { x = Tensor<double, 2>({0, 0}); }
}
