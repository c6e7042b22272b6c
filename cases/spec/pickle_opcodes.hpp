// The names of pickle's opcodes, for messages.
#pragma once

#include <string>

namespace assay {

std::string opcode_name(unsigned char code);  // "STACK_GLOBAL"; "0xff" for what is no opcode

}  // namespace assay
