// Child processes of a run: a worker on pipes, signals as file descriptors.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace assay {

// SIGINT, SIGTERM and SIGHUP become readable on a descriptor while this lives, so that a wait sees them; SIGPIPE is
// ignored.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  int descriptor() const { return descriptor_; }
  int take();  // the signal that came, 0 if none

 private:
  int descriptor_ = -1;
};

std::string signal_text(int signal);  // "SIGSEGV"

// A child with its stdin and its descriptor 3 on pipes, in its own process group (Ctrl-C reaches the parent only),
// killed when the parent dies. Its stdout and stderr go to the log.
class ChildProcess {
 public:
  inline static constexpr int kAnswerDescriptor = 3;

  ChildProcess(const std::vector<std::string>& arguments, const std::filesystem::path& log);  // HarnessError
  ~ChildProcess();                                                                            // kills it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void send(const std::string& line);  // a child that is gone shows in receive()

  enum class Event { kLine, kEnded, kTimeout, kSignal };
  struct Answer {
    Event event;
    std::string line;      // kLine
    std::string how;       // kEnded: "SIGSEGV" or "exit 3"
    bool crashed = false;  // kEnded by a signal
    int signal = 0;        // kSignal: what the parent got
  };
  Answer receive(double timeout_s, Interrupts& interrupts);

 private:
  Answer ended();

  pid_t pid_ = -1;
  int input_ = -1, answers_ = -1;
  std::string buffer_;
};

// Standard output of a short command, without its last line break; empty if it cannot be run or fails.
std::string output_of(const std::vector<std::string>& arguments);

// The last lines of a file, for messages.
std::string last_lines(const std::filesystem::path& file, size_t lines);

}  // namespace assay
