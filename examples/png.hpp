// Pictures as PNG files: https://www.w3.org/TR/png-3/, without compression.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>

#include <cleave/core/error.hpp>
#include <cleave/tensor/tensor.hpp>

namespace png {

inline std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += char(value >> shift & 255u);
  return bytes;
}

/// Length, type, data, and their cyclic redundancy check.
inline std::string chunk(const std::string& type, const std::string& data) {
  std::uint32_t crc = ~0u;
  for (const char c : type + data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1u ? 0xEDB88320u : 0u);
  }
  return big_endian(std::uint32_t(data.size())) + type + data + big_endian(~crc);
}

/// A zlib stream of blocks that are stored as they are.
inline std::string stored(const std::string& data) {
  std::string stream = "\x78\x01";
  for (std::size_t at = 0; at < data.size(); at += 65535) {
    const auto n = std::uint32_t(std::min<std::size_t>(65535, data.size() - at));
    stream += char(at + n == data.size());
    for (const std::uint32_t half : {n, ~n}) stream += {char(half & 255u), char(half >> 8 & 255u)};
    stream += data.substr(at, n);
  }
  std::uint32_t a = 1, b = 0;
  for (const char c : data) a = (a + static_cast<unsigned char>(c)) % 65521, b = (a + b) % 65521;
  return stream + big_endian(b << 16 | a);
}

/// Writes elements from -limit to limit in colours from blue over white to red.
/// @throws Error if the file cannot be written
inline void write(const std::string& path, const cleave::Tensor<double, 2>& x, double limit) {
  std::string colours, pixels;
  for (int i = 0; i < 256; ++i) {
    const double t = i / 255.0;
    for (const double c :
         {std::fmin(2 * t, 1.0), 1 - std::fabs(2 * t - 1), std::fmin(2 - 2 * t, 1.0)})
      colours += char(std::lround(255 * c));
  }
  for (cleave::index_t i = 0; i < x.extent(0); ++i) {
    pixels += '\0';  // rows are not filtered
    for (cleave::index_t j = 0; j < x.extent(1); ++j)
      pixels += char(std::lround(127.5 + 127.5 * std::clamp(x(i, j) / limit, -1.0, 1.0)));
  }
  const std::string header = big_endian(std::uint32_t(x.extent(1))) +
                             big_endian(std::uint32_t(x.extent(0))) +
                             std::string("\x08\x03\0\0\0", 5);
  std::ofstream file(path, std::ios::binary);
  file << "\x89PNG\r\n\x1a\n"
       << chunk("IHDR", header) << chunk("PLTE", colours) << chunk("IDAT", stored(pixels))
       << chunk("IEND", "");
  file.close();
  if (!file) throw cleave::Error("png::write", "'" + path + "' cannot be written");
}

}  // namespace png
