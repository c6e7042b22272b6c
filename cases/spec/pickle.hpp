// The pickle of a state dict, data.pkl of an archive that torch.save wrote (protocols 2 to 5, torch 1.6 to 2.13).
//
// A pickle is a program for a stack machine. This one knows the few opcodes and globals that a dict of tensors needs,
// makes a list of tensors of them, and calls nothing: a name stands for itself and is compared with the list below.
// Everything else is refused by name and offset.
//
// opcodes   PROTO FRAME STOP MARK, NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT, BINUNICODE
//           SHORT_BINUNICODE, EMPTY_TUPLE TUPLE TUPLE1-3, EMPTY_LIST APPEND APPENDS, EMPTY_DICT SETITEM SETITEMS,
//           BINPUT LONG_BINPUT MEMOIZE BINGET LONG_BINGET, GLOBAL STACK_GLOBAL REDUCE BUILD BINPERSID
// globals   collections.OrderedDict called with nothing; torch._utils._rebuild_tensor_v2 and _rebuild_parameter called
//           with their arguments; torch.<X>Storage only as the type in a persistent id
// BUILD     only sets the _metadata of an OrderedDict, which is dropped
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cases/spec/host_tensor.hpp"

namespace assay {

// A tensor as the pickle describes it: element [i, j, ...] is element offset + i * strides[0] + j * strides[1] + ... of
// a storage. Nothing is checked against the storage's bytes here.
struct PickledTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::string storage;        // digits; the entry data/<storage>
  int64_t storage_count = 0;  // elements
  int64_t offset = 0;         // elements
  Shape shape;
  std::vector<int64_t> strides;  // elements; as many as dimensions
};

inline constexpr uint64_t kLargestPickle = 64 << 20;

// The tensors of the dict, in its order. InputError with `where` and the byte: what is said above; names that are not
// strings, not printable, or set twice; values that are no tensor; dtypes that HostTensor has not; sizes, strides and
// offsets that are negative or not whole; more than 64 dimensions, 1000 open marks, 100 000 items on the stack or two
// million values; anything left on the stack or behind STOP.
std::vector<PickledTensor> read_state_dict(std::string_view pickle, const std::string& where);

}  // namespace assay
