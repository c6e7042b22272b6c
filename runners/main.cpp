// assay: the command line. Commands are listed in commands/commands.def.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <system_error>

#include "cases/spec/error.hpp"
#include "cases/spec/select.hpp"
#include "runners/commands/commands.hpp"
#include "runners/invocation.hpp"

namespace assay {

CLI::App* new_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& examples) {
  CLI::App* command = app.add_subcommand(name, description);
  command->fallthrough();
  if (!examples.empty()) command->footer("Examples:\n" + examples);
  return command;
}

namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  assay run mamba mamba2                       every case of two models, on each subject that is built here\n"
    "  assay run 'mamba2/cache.*' --subject fast    some cases, one subject\n"
    "  assay run '*' --subject path/to/libengine.so your own engine (cases/spec/subject.hpp)\n"
    "\n"
    "A SELECTOR is a model, a glob over case ids, or model:, aspect:, op:, tier:, config: with a name; '*' is "
    "everything.\n"
    "\n"
    "Exit codes:\n"
    "  0   every status is allowed\n"
    "  1   a verdict failed\n"
    "  2   bad usage or input, or nothing to run\n"
    "  3   the harness itself failed or was interrupted (disk, output folder, signal)\n"
    "  77  all that was selected was skipped\n";

int report(const Error& error, int code) {
  std::fprintf(stderr, "assay: %s\n", error.what());
  return code;
}

// A wrong command name gets the nearest ones; CLI11 would only say that an argument was not expected.
void check_command_name(const CLI::App& app, const Invocation& invocation) {
  if (invocation.arguments.empty() || invocation.arguments[0].starts_with('-')) return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == invocation.arguments[0]) return;
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  std::string advice = "`assay --help` lists the commands";
  if (const auto close = nearest(invocation.arguments[0], names); !close.empty())
    advice = "did you mean '" + close[0] + "'? " + advice;
  throw InputError("command", "unknown command '" + invocation.arguments[0] + "'", advice);
}

// What was printed may still lie in the buffer, or have been refused long ago: a full disk or a closed pipe must not
// look like a pass.
void check_standard_output() {
  errno = 0;
  const bool had_failed = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !had_failed) return;
  std::clearerr(stdout);
  if (errno == 0) std::fflush(stdout);
  // The error of the first refusal is gone: another write asks again.
  if (errno == 0 && std::fputc('\n', stdout) != EOF) std::fflush(stdout);
  throw HarnessError("standard output", errno ? std::strerror(errno) : "could not be written");
}

int run_main(int argc, char** argv) {
  Invocation invocation;
  invocation.executable = executable_path();
  invocation.arguments.assign(argv + 1, argv + argc);

  CLI::App app(
      "Assay: does this implementation compute what the original model computes, and where does it first go wrong?",
      "assay");
  app.require_subcommand(1);
  app.set_version_flag("--version", "assay " ASSAY_VERSION, "Version, and exit");
  app.set_help_all_flag("--help-all", "Help of every command");
  app.add_option("--root", invocation.root_option,
                 "Root of a checkout of Assay (default: found from the working folder)")
      ->type_name("DIR");
  app.footer(kFooter);
#define ASSAY_COMMAND(stem) add_##stem(app, invocation);
#include "runners/commands/commands.def"
#undef ASSAY_COMMAND

  if (argc == 1) {
    std::fputs(app.help().c_str(), stdout);
    return kExitUsage;
  }
  check_command_name(app, invocation);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    std::cout.flush();
    return code == 0 ? kExitAllowed : kExitUsage;
  }
  return invocation.action ? invocation.action() : kExitUsage;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  using namespace assay;
  try {
    const int code = run_main(argc, argv);
    check_standard_output();
    return code;
  } catch (const HarnessError& error) {
    return report(error, kExitHarness);
  } catch (const Error& error) {
    return report(error, kExitUsage);
  } catch (const std::system_error& error) {
    const bool is_output = std::ferror(stdout) != 0;
    std::fprintf(stderr, "assay: %s\n",
                 is_output ? ("standard output: " + error.code().message()).c_str() : error.what());
    return kExitHarness;
  } catch (const std::bad_alloc&) {
    std::fputs("assay: out of memory\n", stderr);
    return kExitHarness;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "assay: %s\n", error.what());
    return kExitHarness;
  }
}
