#include "golden/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

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

// Owns a running child: whoever leaves without wait() leaves no process behind.
struct Process {
  pid_t id = -1;
  ~Process() {
    if (id < 0) return;
    ::kill(id, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
    }
    id = -1;
    return status;
  }
};

struct FileActions {
  posix_spawn_file_actions_t actions;
  FileActions() { posix_spawn_file_actions_init(&actions); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions); }
};

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
                      const std::function<void(const std::string&)>& line) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw HarnessError(arguments.front(), std::string("cannot make a pipe: ") + std::strerror(errno));
  Descriptor read_end{ends[0]}, write_end{ends[1]};

  FileActions files;
  posix_spawn_file_actions_addopen(&files.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files.actions, write_end.number, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files.actions, write_end.number, STDERR_FILENO);
  std::vector<std::string> argument_texts = arguments, environment_texts = merged(environment);
  Process process;
  const int error = ::posix_spawn(&process.id, arguments.front().c_str(), &files.actions, nullptr,
                                  pointers(argument_texts).data(), pointers(environment_texts).data());
  if (error != 0) {
    process.id = -1;
    throw HarnessError(arguments.front(), std::string("cannot be started: ") + std::strerror(error));
  }
  write_end.close();  // else the end of the child's output is never seen

  ChildResult result;
  std::string pending;
  const auto take = [&](std::string text) {
    result.tail.push_back(text);
    if (result.tail.size() > kTail) result.tail.erase(result.tail.begin());
    if (line) line(text);
  };
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(read_end.number, buffer, sizeof buffer);
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
