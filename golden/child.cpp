#include "golden/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "cases/spec/error.hpp"

extern char** environ;

namespace assay::golden {
namespace {

constexpr size_t kTail = 20;

// Owns one end of a pipe.
struct Descriptor {
  int number = -1;
  ~Descriptor() { close(); }
  void close() {
    if (number >= 0) ::close(number);
    number = -1;
  }
};

// Both ends of a pipe, closed on exec.
struct Pipe {
  Descriptor read_end, write_end;
  explicit Pipe(const std::string& program) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw HarnessError(program, std::string("cannot make a pipe: ") + std::strerror(errno));
    read_end.number = ends[0];
    write_end.number = ends[1];
  }
};

// Owns a running child and its process group: whoever leaves without wait() leaves no process behind.
struct Process {
  pid_t id = -1;
  ~Process() {
    if (id >= 0) wait(SIGKILL);
  }
  // With a signal: sends it first. What the child started is killed while its number is still the group's.
  int wait(int signal = 0) {
    if (signal) ::kill(-id, signal);
    siginfo_t ended;
    while (::waitid(P_PID, static_cast<id_t>(id), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
    ::kill(-id, SIGKILL);
    int status = 0;
    while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
    }
    id = -1;
    return status;
  }
};

// Between fork and exec: only async-signal-safe calls. What fails is told as errno through `failure`.
[[noreturn]] void become(char* const* arguments, char* const* environment, int output, int failure, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0 && ::dup2(null, STDIN_FILENO) >= 0 && ::dup2(output, STDOUT_FILENO) >= 0 &&
      ::dup2(output, STDERR_FILENO) >= 0)
    ::execve(arguments[0], arguments, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(failure, &error, sizeof error);
  ::_exit(127);
}

// Until `from` has something to read. Stopped when `stop` has.
void wait_for(int from, int stop) {
  for (;;) {
    std::array<pollfd, 2> waits{{{from, POLLIN, 0}, {stop, POLLIN, 0}}};  // a negative one is passed over
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    if (waits[1].revents) throw Stopped();
    if (waits[0].revents) return;
  }
}

std::vector<std::string> merged(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    bool is_replaced = false;
    for (const auto& [name, value] : added) is_replaced |= text.starts_with(name + "=");
    if (!is_replaced) result.push_back(text);
  }
  for (const auto& [name, value] : added) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& arguments,
                      const std::vector<std::pair<std::string, std::string>>& environment,
                      const std::function<void(const std::string&)>& line, int stop) {
  Pipe output(arguments.front()), failure(arguments.front());
  std::vector<std::string> argument_texts = arguments, environment_texts = merged(environment);
  const std::vector<char*> argument_pointers = pointers(argument_texts),
                           environment_pointers = pointers(environment_texts);
  const pid_t parent = ::getpid();
  Process process{::fork()};
  if (process.id == 0)
    become(argument_pointers.data(), environment_pointers.data(), output.write_end.number, failure.write_end.number,
           parent);
  int error = process.id < 0 ? errno : 0;
  output.write_end.close();  // else the end of the child's output is never seen
  failure.write_end.close();
  if (process.id > 0) {
    ::setpgid(process.id, process.id);  // here too: whichever comes first, before a kill of the group
    while (::read(failure.read_end.number, &error, sizeof error) < 0 && errno == EINTR) {
    }
  }
  if (error != 0) throw HarnessError(arguments.front(), std::string("cannot be started: ") + std::strerror(error));

  ChildResult result;
  std::string pending;
  const auto take = [&](std::string text) {
    result.tail.push_back(text);
    if (result.tail.size() > kTail) result.tail.erase(result.tail.begin());
    if (line) line(text);
  };
  char buffer[4096];
  for (;;) {
    wait_for(output.read_end.number, stop);
    const ssize_t got = ::read(output.read_end.number, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    pending.append(buffer, static_cast<size_t>(got));
    for (size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1))
      take(pending.substr(0, end));
  }
  if (!pending.empty()) take(pending);

  const int status = process.wait();
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return result;
}

}  // namespace assay::golden
