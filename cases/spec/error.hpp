// Error: what went wrong, where, and what to do about it. Everything Assay refuses is one of these four kinds;
// the runner turns the kind into a status or an exit code and prints what() as the only message.
//
//   InputError        a file, argument, config, case or weight is wrong        status ERROR, exit 2 outside a run
//   HarnessError      disk, output folder, child process, environment          exit 3
//   UnsupportedError  the subject or machine cannot do this; says which part   status SKIP
//   MemoryError       an allocation failed; text holds the sizes               status OOM
#pragma once

#include <stdexcept>
#include <string>

namespace assay {

class Error : public std::runtime_error {
 public:
  // where: file and JSON pointer, tensor name, option ...; advice may be empty.
  Error(std::string where, std::string what, std::string advice = "");
  const std::string& where() const { return where_; }
  const std::string& problem() const { return problem_; }
  const std::string& advice() const { return advice_; }

 private:
  std::string where_, problem_, advice_;
};

class InputError : public Error {
 public:
  using Error::Error;
};
class HarnessError : public Error {
 public:
  using Error::Error;
};
class UnsupportedError : public Error {
 public:
  using Error::Error;
};
class MemoryError : public Error {
 public:
  using Error::Error;
};

}  // namespace assay
