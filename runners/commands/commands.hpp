// The commands of `assay`. To add one, say `list`:
//   1. commands.def: ASSAY_COMMAND(list)
//   2. commands/list.cpp: void add_list(CLI::App& app, Invocation& invocation) { ... }
// add_<name> makes the subcommand with new_command, binds its options to a std::shared_ptr of an options struct, and
// sets
//     command->callback([options, &invocation] { invocation.action = [options, &invocation] { return list(*options,
//     ...); }; });
// main parses, then runs the action; what it returns is the exit code (ExitCode). Errors are thrown
// (cases/spec/error.hpp) and main prints them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "runners/invocation.hpp"

namespace assay {

#define ASSAY_COMMAND(stem) void add_##stem(CLI::App& app, Invocation& invocation);
#include "runners/commands/commands.def"
#undef ASSAY_COMMAND

// A subcommand that also takes the global options after its name. examples: one command a line, shown under --help.
CLI::App* new_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& examples);

}  // namespace assay
