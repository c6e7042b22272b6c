#include "runners/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "cases/spec/error.hpp"
#include "cases/spec/scratch_folder.hpp"

namespace assay {

namespace {

sigset_t interrupting_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

std::vector<char*> argument_pointers(const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

HarnessError failed(const std::string& call) {
  return HarnessError("child process", fmt::format("{}: {}", call, std::strerror(errno)));
}

// Between fork and exec: only async-signal-safe calls.
[[noreturn]] void become_worker(char* const* arguments, int input, int answers, int log, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  const sigset_t set = interrupting_signals();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  if (dup2(input, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) _exit(127);
  // The pipe may already be descriptor 3, where dup2 would leave it closed on exec.
  if (answers == ChildProcess::kAnswerDescriptor)
    fcntl(answers, F_SETFD, 0);
  else if (dup2(answers, ChildProcess::kAnswerDescriptor) < 0)
    _exit(127);
  execv(arguments[0], arguments);
  _exit(127);
}

}  // namespace

Interrupts::Interrupts() {
  sigset_t set = interrupting_signals();
  // What the caller has ignored (nohup, a background job) stays ignored: blocked signals would reach the descriptor.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) sigdelset(&set, signal);
  }
  sigprocmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) throw failed("signalfd");
  stopped_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stopped_ < 0) throw failed("eventfd");
}

Interrupts::~Interrupts() {
  close(signals_);
  close(stopped_);
  const sigset_t set = interrupting_signals();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

bool Interrupts::is_stopped() {
  signalfd_siginfo info{};
  if (read(signals_, &info, sizeof info) == sizeof info) {
    int none = 0;
    signal_.compare_exchange_strong(none, static_cast<int>(info.ssi_signo));
    stop();
  }
  return is_stopped_;
}

void Interrupts::stop() {
  is_stopped_ = true;
  eventfd_write(stopped_, 1);
}

std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : fmt::format("signal {}", signal);
}

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, const std::filesystem::path& log) {
  std::array<int, 2> input{-1, -1}, answers{-1, -1};
  if (pipe2(input.data(), O_CLOEXEC) != 0 || pipe2(answers.data(), O_CLOEXEC) != 0) throw failed("pipe");
  const int log_descriptor = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log_descriptor < 0) throw HarnessError(log.string(), fmt::format("cannot write: {}", std::strerror(errno)));
  std::vector<char*> pointers = argument_pointers(arguments);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become_worker(pointers.data(), input[0], answers[1], log_descriptor, parent);
  const int error = errno;
  close(input[0]);
  close(answers[1]);
  close(log_descriptor);
  input_ = input[1];
  answers_ = answers[0];
  if (pid_ < 0) {
    errno = error;
    throw failed("fork");
  }
  setpgid(pid_, pid_);  // here too: whichever comes first, before a kill of the group
}

ChildProcess::~ChildProcess() {
  close(input_);
  close(answers_);
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    remove_scratch_of(pid_);
  }
}

void ChildProcess::send(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = write(input_, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    done += static_cast<size_t>(count);
  }
}

ChildProcess::Answer ChildProcess::receive(double timeout_s, Interrupts& interrupts) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_s);
  for (;;) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      Answer answer{Event::kLine, buffer_.substr(0, end), ""};
      buffer_.erase(0, end + 1);
      return answer;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return {Event::kTimeout, "", ""};
    const auto [signals, stopped] = interrupts.descriptors();
    std::array<pollfd, 3> waits{{{answers_, POLLIN, 0}, {signals, POLLIN, 0}, {stopped, POLLIN, 0}}};
    // In slices: a timeout of weeks does not fit poll's int.
    if (poll(waits.data(), waits.size(), static_cast<int>(std::min<int64_t>(left, 60'000))) < 0 && errno != EINTR)
      throw failed("poll");
    if (interrupts.is_stopped()) return {Event::kStopped, "", ""};
    if (!(waits[0].revents & (POLLIN | POLLHUP))) continue;
    std::array<char, 65536> block;
    const ssize_t count = read(answers_, block.data(), block.size());
    if (count > 0) buffer_.append(block.data(), static_cast<size_t>(count));
    if (count == 0) return ended();
  }
}

ChildProcess::Answer ChildProcess::ended() {
  int status = 0;
  kill(-pid_, SIGKILL);  // it closed its answers: nothing more can come, whether or not it has ended by itself
  waitpid(pid_, &status, 0);
  remove_scratch_of(pid_);
  pid_ = -1;
  if (WIFSIGNALED(status)) return {Event::kEnded, "", signal_text(WTERMSIG(status))};
  return {Event::kEnded, "", fmt::format("exit {}", WEXITSTATUS(status))};
}

std::string output_of(const std::vector<std::string>& arguments) {
  std::array<int, 2> output{-1, -1};
  if (pipe2(output.data(), O_CLOEXEC) != 0) return "";
  std::vector<char*> pointers = argument_pointers(arguments);
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(output[1], 1);
    dup2(null, 2);
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  close(output[1]);
  std::string text;
  std::array<char, 4096> block;
  for (ssize_t count = 0; child > 0 && (count = read(output[0], block.data(), block.size())) > 0;)
    text.append(block.data(), static_cast<size_t>(count));
  close(output[0]);
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return "";
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string last_lines(const std::filesystem::path& file, size_t lines) {
  std::ifstream stream(file);
  std::vector<std::string> kept;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty()) continue;
    kept.push_back(line);
    if (kept.size() > lines) kept.erase(kept.begin());
  }
  std::string text;
  for (const std::string& line : kept) text += (text.empty() ? "" : "\n") + line;
  return text;
}

}  // namespace assay
