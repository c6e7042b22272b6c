#include "cases/spec/pickle_opcodes.hpp"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace assay {

namespace {

// Every opcode of protocols 0 to 5 (CPython's Lib/pickletools.py), so that a refusal can name it: the code and its
// name, and the names from 0x80 on.
constexpr std::string_view kLetters[] = {
    "(MARK",          ".STOP",        "0POP",       "1POP_MARK",        "2DUP",      "FFLOAT",      "IINT",
    "JBININT",        "KBININT1",     "LLONG",      "MBININT2",         "NNONE",     "PPERSID",     "QBINPERSID",
    "RREDUCE",        "SSTRING",      "TBINSTRING", "USHORT_BINSTRING", "VUNICODE",  "XBINUNICODE", "aAPPEND",
    "bBUILD",         "cGLOBAL",      "dDICT",      "}EMPTY_DICT",      "eAPPENDS",  "gGET",        "hBINGET",
    "iINST",          "jLONG_BINGET", "lLIST",      "]EMPTY_LIST",      "oOBJ",      "pPUT",        "qBINPUT",
    "rLONG_BINPUT",   "sSETITEM",     "tTUPLE",     ")EMPTY_TUPLE",     "uSETITEMS", "GBINFLOAT",   "BBINBYTES",
    "CSHORT_BINBYTES"};
constexpr std::string_view kFrom80[] = {
    "PROTO",     "NEWOBJ",     "EXT1",        "EXT2",           "EXT4",      "TUPLE1",           "TUPLE2",
    "TUPLE3",    "NEWTRUE",    "NEWFALSE",    "LONG1",          "LONG4",     "SHORT_BINUNICODE", "BINUNICODE8",
    "BINBYTES8", "EMPTY_SET",  "ADDITEMS",    "FROZENSET",      "NEWOBJ_EX", "STACK_GLOBAL",     "MEMOIZE",
    "FRAME",     "BYTEARRAY8", "NEXT_BUFFER", "READONLY_BUFFER"};

}  // namespace

std::string opcode_name(unsigned char code) {
  if (code >= 0x80 && code - 0x80u < std::size(kFrom80)) return std::string(kFrom80[code - 0x80]);
  for (const std::string_view row : kLetters)
    if (static_cast<unsigned char>(row[0]) == code) return std::string(row.substr(1));
  return fmt::format("0x{:02x}", code);
}

}  // namespace assay
