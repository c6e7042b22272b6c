// Worker: the hidden command that runs cases in a process of its own. Tasks come as JSON lines on stdin, answers go as
// JSON lines to descriptor 3:
//
//   out  {"kind":"ready","name","device","versions","models","is_accelerated"} | {"kind":"unavailable","reason","text"}
//        | {"kind":"refused","text"}                          once, after the subject was opened
//   in   {"case": file, "config": file}                       config "": an op case
//   out  {"kind":"result",...}                                the row, for each task
//        | {"kind":"broken","where","what","advice"}          a HarnessError: the run is to end
#pragma once

#include <filesystem>
#include <string>

namespace assay {

struct WorkerOptions {
  std::string subject;
  std::filesystem::path root, executable, dump;
};

int work(const WorkerOptions& options);

}  // namespace assay
