#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include <cleave/tensor/npy.hpp>

#include "errors.hpp"

using namespace cleave;

namespace {

// A file that is removed at the end of the test.
struct TemporaryFile {
  std::string path =
      (std::filesystem::temp_directory_path() / ("cleave-npy-" + std::to_string(getpid()) + ".npy"))
          .string();
  TemporaryFile() = default;
  explicit TemporaryFile(const std::string& bytes) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
  }
  ~TemporaryFile() { std::remove(path.c_str()); }

  std::string bytes() const {
    std::FILE* file = std::fopen(path.c_str(), "rb");
    std::string all;
    for (int c; (c = std::fgetc(file)) != EOF;) all += char(c);
    std::fclose(file);
    return all;
  }
};

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += char(std::strtol(hex.substr(i, 2).c_str(), nullptr, 16));
  return bytes;
}

// A file as numpy 2.4 writes it: preamble, dictionary, blanks up to byte 127, newline, elements.
std::string numpy_file(const std::string& dictionary, const std::string& elements_hex,
                       int version = 1) {
  std::string file = "\x93NUMPY";
  file += char(version);
  file += '\0';
  const std::size_t length = version == 1 ? 128 - 10 : 128 - 12;
  file += char(length);
  file += std::string(version == 1 ? 1 : 3, '\0');
  file += dictionary;
  file += std::string(127 - file.size(), ' ') + '\n';
  return file + from_hex(elements_hex);
}

const std::string floats_2x3 = "000000000000803f0000004000004040000090400000c0c0";
const char* const dictionary_2x3 = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

template <class T, int Rank>
std::string load_error(const std::string& path) {
  return cleave::testing::error_of([&] { load_npy<T, Rank>(path); });
}

template <class T, int Rank>
std::string error_of(const std::string& bytes) {
  const TemporaryFile file(bytes);
  std::string text = load_error<T, Rank>(file.path);
  const std::size_t at = text.find(file.path);
  return at == text.npos ? text : text.replace(at, file.path.size(), "F");
}

template <class T>
void round_trip(const std::string& elements_hex, const char* descr,
                std::initializer_list<T> values) {
  const std::string bytes =
      numpy_file(std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (" +
                     std::to_string(values.size()) + ",), }",
                 elements_hex);
  const TemporaryFile file(bytes);
  const auto loaded = load_npy<T, 1>(file.path);
  REQUIRE(loaded.size() == index_t(values.size()));
  index_t i = 0;
  for (const T& value : values) CHECK(loaded(i++) == value);
  save_npy(file.path, loaded);
  CHECK(file.bytes() == bytes);
}

}  // namespace

TEST_CASE("every element type of the format is read from and written as numpy's bytes") {
  round_trip<bool>("010001", "|b1", {true, false, true});
  round_trip<std::int8_t>("ff7f80", "|i1", {-1, 127, -128});
  round_trip<std::uint8_t>("00ff", "|u1", {0, 255});
  round_trip<std::int32_t>("fffffffff6ffff7f", "<i4", {-1, 2147483638});
  round_trip<std::int16_t>("ffff", "<i2", {-1});
  round_trip<std::uint16_t>("ffff", "<u2", {65535});
  round_trip<std::uint32_t>("ffffffff", "<u4", {4294967295u});
  round_trip<std::int64_t>("07000000000000000800000000000080", "<i8",
                           {7, std::numeric_limits<std::int64_t>::min() + 8});
  round_trip<std::uint64_t>("ffffffffffffffff", "<u8", {~std::uint64_t{0}});
  round_trip<half>("003c00c0ff7b007c", "<f2",
                   {half(1), half(-2), half(65504), half(std::numeric_limits<float>::infinity())});
  round_trip<float>("0000003f", "<f4", {0.5f});
  round_trip<double>("0000000000000440", "<f8", {2.5});
  round_trip<std::complex<float>>("0000803f000000c0", "<c8", {{1, -2}});
  round_trip<std::complex<double>>(
      "000000000000f03f0000000000000040000000000000008000000000000008c0", "<c16",
      {{1, 2}, {-0.0, -3}});
}

TEST_CASE("a matrix is read row by row in versions 1, 2 and 3 of the format") {
  for (const int version : {1, 2, 3}) {
    const TemporaryFile file(numpy_file(dictionary_2x3, floats_2x3, version));
    const auto x = load_npy<float, 2>(file.path);
    CHECK(x.shape() == std::array<index_t, 2>{2, 3});
    CHECK(x(0, 0) == 0);
    CHECK(x(0, 2) == 2);
    CHECK(x(1, 0) == 3);
    CHECK(x(1, 1) == 4.5f);
    CHECK(x(1, 2) == -6);
  }
}

TEST_CASE("a matrix in Fortran order becomes row-major") {
  const TemporaryFile file(numpy_file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
                                      "00000000000040400000803f00009040000000400000c0c0"));
  const auto x = load_npy<float, 2>(file.path);
  CHECK(x.contiguous());
  CHECK(x(0, 1) == 1);
  CHECK(x(1, 0) == 3);
  CHECK(x(1, 2) == -6);

  // numpy.arange(24).reshape(2, 3, 4), in Fortran order
  const TemporaryFile cube(numpy_file(
      "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 4), }",
      "000000000c00000004000000100000000800000014000000010000000d00000005000000110000000900"
      "000015000000020000000e00000006000000120000000a00000016000000030000000f000000070000"
      "00130000000b00000017000000"));
  const auto y = load_npy<std::int32_t, 3>(cube.path);
  for (index_t i = 0; i < 24; ++i) CHECK(y.data()[i] == i);
}

TEST_CASE("scalars, empty arrays and strided tensors survive a round trip") {
  const TemporaryFile file;
  save_npy(file.path, Tensor<double, 0>({}, {2.5}));
  CHECK(file.bytes() ==
        numpy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", "0000000000000440"));
  CHECK(load_npy<double, 0>(file.path).item() == 2.5);

  save_npy(file.path, Tensor<std::uint8_t, 2>({0, 4}));
  CHECK(file.bytes() ==
        numpy_file("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 4), }", ""));
  CHECK(load_npy<std::uint8_t, 2>(file.path).shape() == std::array<index_t, 2>{0, 4});

  const Tensor<float, 2> columns({3, 2}, {0, 3, 1, 4.5f, 2, -6});
  save_npy(file.path, columns.transpose(0, 1));
  CHECK(file.bytes() == numpy_file(dictionary_2x3, floats_2x3));
}

TEST_CASE("a long header grows by 64 bytes at a time and stays readable") {
  const TemporaryFile file;
  const index_t big = 1000000000000000;
  const Tensor<std::uint8_t, 8> x(std::array<index_t, 8>{0, big, 1, 2, 1, 1, 2, 1});
  save_npy(file.path, x);
  CHECK(file.bytes().size() % 64 == 0);
  CHECK(load_npy<std::uint8_t, 8>(file.path).shape() == x.shape());
}

TEST_CASE("keys in any order, double quotes and blanks are the same dictionary") {
  const TemporaryFile file(
      numpy_file("{ \"shape\":(2,3L) ,\"fortran_order\" : False, 'descr':'<f4'}", floats_2x3));
  CHECK(load_npy<float, 2>(file.path)(1, 1) == 4.5f);
}

TEST_CASE("a file with another array than the program expects is refused with both named") {
  const std::string file = numpy_file(dictionary_2x3, floats_2x3);
  CHECK(error_of<double, 2>(file) == "load_npy: 'F' has elements of type float32, not float64");
  CHECK(error_of<float, 3>(file) == "load_npy: 'F' has 2 dimensions [2, 3], not 3");
}

TEST_CASE("elements that cleave does not have are refused with their name") {
  const auto error = [](const char* descr) {
    return error_of<float, 1>(
        numpy_file(std::string("{'descr': ") + descr + ", 'fortran_order': False, 'shape': (2,), }",
                   "0000000000000000"));
  };
  CHECK(error("'>f4'") == "load_npy: 'F' is big-endian ('>f4'); cleave reads little-endian files");
  CHECK(error("'<f16'") == "load_npy: 'F' has elements of type '<f16', which is not supported");
  CHECK(error("'<U3'") == "load_npy: 'F' has elements of type '<U3', which is not supported");
  CHECK(error("[('a', '<f4'), ('b', '<i4')]") ==
        "load_npy: 'F' has records as elements; cleave reads arrays of numbers");
  CHECK(error("'|O'") ==
        "load_npy: 'F' has Python objects as elements; cleave reads arrays of numbers");
}

TEST_CASE("a file that is too short or too long is refused with the bytes") {
  const std::string file = numpy_file(dictionary_2x3, floats_2x3);
  CHECK(error_of<float, 2>(file.substr(0, file.size() - 4)) ==
        "load_npy: 'F' is truncated: it has 20 of the 24 bytes of its elements");
  CHECK(error_of<float, 2>(file.substr(0, 100)) ==
        "load_npy: 'F' is truncated: it has 90 of the 118 bytes of its header");
  CHECK(error_of<float, 2>(file.substr(0, 9)) ==
        "load_npy: 'F' is truncated: it has 1 of the 2 bytes of its header");
  CHECK(error_of<float, 2>("") ==
        "load_npy: 'F' is truncated: it has 0 of the 8 bytes of its header");
  CHECK(error_of<float, 2>(file + "x") == "load_npy: 'F' has 1 bytes after its elements");
  // An extent too large for any memory fails before anything is allocated.
  CHECK(error_of<float, 1>(numpy_file(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (100000000000000000,), }", "")) ==
        "load_npy: 'F' is truncated: it has 0 of the 400000000000000000 bytes of its elements");
}

TEST_CASE("files that are not .npy files are refused") {
  CHECK(error_of<float, 2>("0,1,2\n3,4,5\n") == "load_npy: 'F' is not an .npy file");
  CHECK(error_of<float, 2>(numpy_file(dictionary_2x3, floats_2x3, 4)) ==
        "load_npy: 'F' has version 4 of the format; cleave reads 1 to 3");
  for (const char* dictionary :
       {"", "{", "{}", "[]", "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 6, }",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } x", "{'descr': '<f4"}) {
    CAPTURE(dictionary);
    CHECK(error_of<float, 2>(numpy_file(dictionary, floats_2x3)) ==
          "load_npy: 'F' has a malformed header");
  }
  CHECK(error_of<float, 2>(numpy_file(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 3), }",
            "")) == "load_npy: 'F' has more elements than index_t can hold");
  CHECK(error_of<bool, 1>(
            numpy_file("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", "0102")) ==
        "load_npy: 'F' has a bool that is neither 0 nor 1");
}

TEST_CASE("files that cannot be opened, read or written are named") {
  CHECK(load_error<float, 2>("/nowhere/x.npy") ==
        "load_npy: '/nowhere/x.npy' cannot be opened: No such file or directory");
  CHECK(load_error<float, 2>("/") == "load_npy: '/' cannot be read: Is a directory");
  CHECK_THROWS_WITH_AS(save_npy("/nowhere/x.npy", Tensor<float, 1>({3})),
                       "save_npy: '/nowhere/x.npy' cannot be opened: No such file or directory",
                       Error);
  if (std::filesystem::exists("/dev/full")) {
    CHECK_THROWS_WITH_AS(save_npy("/dev/full", Tensor<float, 1>({3})),
                         "save_npy: '/dev/full' cannot be written: No space left on device", Error);
  }
}

TEST_CASE("load_npy_as converts real elements of every type, in either order") {
  const auto loaded = []<class T>(const T*) {
    const TemporaryFile file;
    const Tensor<T, 2> x({2, 3}, {T(0), T(1), T(1), T(0), T(1), T(0)});
    save_npy(file.path, x);
    const Tensor<double, 2> y = load_npy_as<double, 2>(file.path);
    CHECK(y.shape() == x.shape());
    for (index_t i = 0; i < x.size(); ++i) CHECK(y.data()[i] == double(x.data()[i]));
  };
  const auto all = [&]<class... T>() { (loaded(static_cast<const T*>(nullptr)), ...); };
  all.operator()<bool, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                 std::uint32_t, std::int64_t, std::uint64_t, half, float, double>();
  const TemporaryFile file(
      numpy_file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", floats_2x3));
  const auto x = load_npy_as<std::int32_t, 2>(file.path);
  const auto y = load_npy<float, 2>(file.path);
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 3; ++j) CHECK(x(i, j) == std::int32_t(y(i, j)));
}

TEST_CASE("load_npy_as refuses what load_npy refuses, and complex elements") {
  const TemporaryFile file;
  save_npy(file.path, Tensor<std::complex<float>, 1>({1}, {{1, 2}}));
  const auto text = [&](auto f) { return cleave::testing::error_of(f); };
  CHECK(text([&] { load_npy_as<double, 1>(file.path); }) ==
        "load_npy: '" + file.path +
            "' has elements of type complex64, which cannot be converted to float64");
  CHECK(load_npy_as<std::complex<float>, 1>(file.path)(0) == std::complex<float>(1, 2));
  save_npy(file.path, Tensor<float, 1>({2}, {1, 2}));
  CHECK(text([&] { load_npy_as<double, 2>(file.path); }) ==
        "load_npy: '" + file.path + "' has 1 dimensions [2], not 2");
}
