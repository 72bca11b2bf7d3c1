#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/core/dtype.hpp>
#include <cleave/core/reduce_op.hpp>

using namespace cleave;

namespace {

template <class T>
void check(DType type, const char* name) {
  CHECK(dtype_of<T>() == type);
  CHECK(size_of(type) == sizeof(T));
  CHECK(std::string(name_of(type)) == name);
}

}  // namespace

TEST_CASE("every element type has a DType of its size and a name") {
  check<bool>(DType::boolean, "bool");
  check<std::int8_t>(DType::int8, "int8");
  check<std::uint8_t>(DType::uint8, "uint8");
  check<std::int16_t>(DType::int16, "int16");
  check<std::uint16_t>(DType::uint16, "uint16");
  check<std::int32_t>(DType::int32, "int32");
  check<std::uint32_t>(DType::uint32, "uint32");
  check<std::int64_t>(DType::int64, "int64");
  check<std::uint64_t>(DType::uint64, "uint64");
  check<half>(DType::float16, "float16");
  check<bfloat16>(DType::bfloat16, "bfloat16");
  check<float>(DType::float32, "float32");
  check<double>(DType::float64, "float64");
  check<std::complex<float>>(DType::complex64, "complex64");
  check<std::complex<double>>(DType::complex128, "complex128");
  check<float8_e4m3>(DType::float8_e4m3, "float8_e4m3");
  check<float8_e5m2>(DType::float8_e5m2, "float8_e5m2");
}

TEST_CASE("integers are known by their width, whatever the platform calls them") {
  CHECK(dtype_of<long long>() == DType::int64);
  CHECK(dtype_of<unsigned long long>() == DType::uint64);
  CHECK(dtype_of<signed char>() == DType::int8);
  CHECK(dtype_of<short>() == DType::int16);
  CHECK(dtype_of<unsigned short>() == DType::uint16);
  CHECK(dtype_of<unsigned>() == DType::uint32);
  CHECK(dtype_of<long>() == (sizeof(long) == 8 ? DType::int64 : DType::int32));
  CHECK(dtype_of<unsigned long>() == (sizeof(long) == 8 ? DType::uint64 : DType::uint32));
}

TEST_CASE("other types are not elements") {
  static_assert(!Element<long double> && !Element<const float>);
  static_assert(!Element<float*> && !Element<std::complex<long double>> && !Element<std::string>);
  static_assert(Element<half> && Element<bool>);
  CHECK(Element<double>);
}

TEST_CASE("sums of 16-bit floats are accumulated in float, others in their own type") {
  static_assert(std::is_same_v<accumulator_t<half>, float>);
  static_assert(std::is_same_v<accumulator_t<bfloat16>, float>);
  static_assert(std::is_same_v<accumulator_t<std::int32_t>, std::int32_t>);
  static_assert(std::is_same_v<accumulator_t<std::complex<double>>, std::complex<double>>);
  CHECK(is_complex<std::complex<float>>);
  CHECK(!is_complex<float>);
}

TEST_CASE("reductions have a value, a type and a name each") {
  const auto check = []<class Op>(Op, ReduceOp op, const char* name) {
    static_assert(ReductionType<Op>);
    CHECK(Op::value == op);
    CHECK(std::string(name_of(op)) == name);
  };
  check(Sum{}, ReduceOp::sum, "sum");
  check(Avg{}, ReduceOp::avg, "avg");
  check(Max{}, ReduceOp::max, "max");
  check(Min{}, ReduceOp::min, "min");
  check(Product{}, ReduceOp::product, "product");
  check(BitAnd{}, ReduceOp::band, "band");
  check(BitOr{}, ReduceOp::bor, "bor");
  check(BitXor{}, ReduceOp::bxor, "bxor");
  static_assert(!ReductionType<int>);
}
