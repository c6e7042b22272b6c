// translated: runs a callable and turns what libtorch throws into Assay's kinds of error. A failed allocation is a
// MemoryError with libtorch's sizes; anything else from libtorch is a fault of the reference and a HarnessError.
#pragma once

#include <ATen/ATen.h>

#include <new>
#include <string>

#include "cases/spec/error.hpp"

namespace assay::reference {

template <class Callable>
auto translated(const std::string& where, Callable&& callable) {
  try {
    return callable();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    if (text.find("allocate memory") != std::string::npos || text.find("not enough memory") != std::string::npos)
      throw MemoryError(where, text);
    throw HarnessError(where, "libtorch refused a computation: " + text);
  } catch (const std::bad_alloc&) {
    throw MemoryError(where, "an allocation in host memory failed");
  }
}

}  // namespace assay::reference
