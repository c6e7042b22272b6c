#include "reference/call_check.hpp"

#include <span>
#include <string>

#include "cases/spec/error.hpp"

namespace assay::reference {

namespace {

std::string place(const char* what, int64_t row, int64_t column) {
  return std::string(what) + " [" + std::to_string(row) + ", " + std::to_string(column) + "]";
}

void check_tokens(const HostTensor& tokens, int64_t rows, int64_t vocabulary) {
  if (tokens.dtype() != DType::kI64)
    throw InputError("tokens", "have dtype " + std::string(dtype_name(tokens.dtype())) + ", not int64");
  const Shape& shape = tokens.shape();
  if (shape.size() != 2 || shape[0] != rows || shape[1] < 1)
    throw InputError("tokens", "have shape " + to_string(shape) + ", not [" + std::to_string(rows) + ", 1 or more]",
                     "the session has " + std::to_string(rows) + " row(s)");
  const std::span<const int64_t> ids = tokens.values<int64_t>();
  for (int64_t i = 0; i < tokens.count(); ++i) {
    const int64_t id = ids[static_cast<size_t>(i)];
    if (id < 0 || id >= vocabulary)
      throw InputError(
          place("tokens", i / shape[1], i % shape[1]),
          "id " + std::to_string(id) + " is outside the vocabulary [0, " + std::to_string(vocabulary) + ")");
  }
}

void check_mask(const HostTensor& mask, int64_t rows, int64_t columns) {
  if (mask.dtype() != DType::kU8)
    throw InputError("mask", "has dtype " + std::string(dtype_name(mask.dtype())) + ", not uint8");
  if (mask.shape() != Shape{rows, columns})
    throw InputError("mask", "has shape " + to_string(mask.shape()) + ", not " + to_string({rows, columns}),
                     "a mask covers the columns of earlier calls too");
  const std::span<const uint8_t> values = mask.values<uint8_t>();
  for (int64_t row = 0; row < rows; ++row) {
    bool is_real = false;
    for (int64_t column = 0; column < columns; ++column) {
      const uint8_t value = values[static_cast<size_t>(row * columns + column)];
      if (value > 1) throw InputError(place("mask", row, column), "is " + std::to_string(value) + ", not 0 or 1");
      if (is_real && value == 0)
        throw InputError(place("mask", row, column), "is 0 after a 1", "padding is on the left only");
      is_real = value == 1;
    }
  }
}

}  // namespace

void check_call(const Call& call, int64_t rows, int64_t past, int64_t vocabulary) {
  check_tokens(call.tokens, rows, vocabulary);
  if (!call.mask.absent()) check_mask(call.mask, rows, past + call.tokens.shape()[1]);
}

}  // namespace assay::reference
