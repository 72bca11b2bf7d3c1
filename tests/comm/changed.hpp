// Changes a setting of the library for the duration of a scope.
#pragma once

namespace cleave::testing {

template <class T>
struct Changed {
  Changed(T& setting, T value) : of(setting), usual(setting) { of = value; }
  ~Changed() { of = usual; }
  Changed(const Changed&) = delete;  // restores the setting once
  Changed& operator=(const Changed&) = delete;
  T& of;
  T usual;
};

}  // namespace cleave::testing
