// Child processes of a run: a worker on pipes, signals as file descriptors.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

namespace assay {

// What ends the waits of every thread of a run: SIGINT, SIGTERM or SIGHUP, caught while this lives, or stop(). SIGPIPE
// is ignored. Make it before the threads, which inherit its signal mask.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Readable when a signal came (one thread takes it) and, for all threads and for good, once the run is stopped.
  std::array<int, 2> descriptors() const { return {signals_, stopped_}; }
  bool is_stopped();  // by a signal that has come by now, or by stop()
  void stop();
  int signal() const { return signal_; }  // that came first, 0 if none

 private:
  int signals_ = -1, stopped_ = -1;
  std::atomic<int> signal_ = 0;
  std::atomic<bool> is_stopped_ = false;
};

std::string signal_text(int signal);  // "SIGSEGV"

// A child with its stdin and its descriptor 3 on pipes, in its own process group (Ctrl-C reaches the parent only),
// killed when the thread that started it ends. Its stdout and stderr go to the log.
class ChildProcess {
 public:
  inline static constexpr int kAnswerDescriptor = 3;

  ChildProcess(const std::vector<std::string>& arguments, const std::filesystem::path& log);  // HarnessError
  ~ChildProcess();                                                                            // kills it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void send(const std::string& line);  // a child that is gone shows in receive()

  enum class Event { kLine, kEnded, kTimeout, kStopped };
  struct Answer {
    Event event;
    std::string line;  // kLine
    std::string how;   // kEnded: "SIGSEGV" or "exit 3"
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
