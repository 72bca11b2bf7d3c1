// A setting of the library that a test changes for the time of a scope.
#pragma once

namespace cleave::testing {

template <class T>
struct Changed {
  Changed(T& setting, T value) : of(setting), usual(setting) { of = value; }
  ~Changed() { of = usual; }
  Changed(const Changed&) = delete;  // a setting has one value
  Changed& operator=(const Changed&) = delete;
  T& of;
  T usual;
};

}  // namespace cleave::testing
