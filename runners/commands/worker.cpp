#include "runners/worker.hpp"

#include <memory>

#include "runners/commands/commands.hpp"

namespace assay {

void add_worker(CLI::App& app, Invocation& invocation) {
  CLI::App* command = new_command(app, "worker", "Runs cases for a parent `assay run`", "");
  command->group("");  // hidden: only `assay run` starts it
  const auto options = std::make_shared<WorkerOptions>();
  const auto dump = std::make_shared<std::string>();
  command->add_option("--subject", options->subject)->required();
  command->add_option("--dump", *dump);
  command->callback([options, dump, &invocation] {
    invocation.action = [options, dump, &invocation] {
      options->root = invocation.root();
      options->executable = invocation.executable;
      options->dump = *dump;
      return work(*options);
    };
  });
}

}  // namespace assay
