// Environment variables for the duration of a scope, whether it ends or throws.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include <unistd.h>

namespace cleave::testing {

/// Sets an environment variable, or unsets it if `value` is null.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  Setting(const Setting&) = delete;  // restores the variable once
  Setting& operator=(const Setting&) = delete;
  ~Setting() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) const {
    if (value != nullptr) setenv(name_, value, 1);
    else unsetenv(name_);
  }

  const char* name_;
  std::optional<std::string> before_;
};

/// A file that describes the machine, and CLEAVE_TUNE with its name.
class TuneFile {
 public:
  explicit TuneFile(const std::string& text)
      : name("/tmp/cleave-tune-" + std::to_string(getpid())),
        setting_("CLEAVE_TUNE", name.c_str()) {
    std::ofstream(name) << text;
  }
  TuneFile(const TuneFile&) = delete;  // owns the file
  TuneFile& operator=(const TuneFile&) = delete;
  ~TuneFile() { std::remove(name.c_str()); }

  const std::string name;

 private:
  Setting setting_;
};

}  // namespace cleave::testing
