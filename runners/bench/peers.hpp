// Peers: public implementations of a row's op, timed on the same GPU right after our kernel, by the same method, in a
// Python of the user's (runners/bench/peers.py). Their absence or failure is a line of its row, never an error.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/scratch_folder.hpp"
#include "runners/bench/measure.hpp"
#include "runners/process.hpp"

namespace assay::bench {

// What runners/bench/peers.json (schema runners/schema/bench_peers.schema.json) names for one row.
struct RowPeers {
  nlohmann::json peers = nlohmann::json::array();  // [{call, what, dtype}]
  std::string none;                                // why there is none; empty if there are some
};
using PeerTable = std::map<std::string, RowPeers>;

PeerTable read_peers(const std::filesystem::path& root, const Table& table);  // as parse_peers
// InputError naming file and pointer: a row of the table without an entry, or an entry that is no row's.
PeerTable parse_peers(const nlohmann::json& document, const std::filesystem::path& file, const Table& table);

struct PeerTime {
  std::string peer, version;  // "fla l2norm", "0.5.2"
  std::string dtype;          // float32, tf32 (float32 with products in TF32), bfloat16, float16
  std::vector<double> times_ms;
  double error_of_scale = 0;  // its largest difference to the formula, at the row's gate sizes
  std::string problem;        // why it has no time; empty if it has
};

struct PeerSettings {
  std::vector<std::string> command = {};  // interpreter and program
  std::string unusable = "";              // why there is no command
  std::string device = "";                // the kernels' own: a peer on another GPU is none
  double timeout_s = 300;                 // of silence; a peer that compiles its candidates takes minutes at most
  std::function<void(const std::string&)> progress = {};
};

// The command of the repository's program: python, or if that is empty golden::originals_python. HarnessError.
std::vector<std::string> peers_command(const std::filesystem::path& root, const std::filesystem::path& python);

class Peers {
 public:
  explicit Peers(PeerSettings settings) : settings_(std::move(settings)), unusable_(settings_.unusable) {}

  // One entry each of what the row names, in that order, or one that says why there is none. A process that ends or
  // falls silent is replaced for the next row; the rest of the rows have no peers if it did not come as far as naming
  // its device, or failed on three rows in a row. A signal to this process ends it as without peers.
  std::vector<PeerTime> measure(const Row& row, const RowPeers& named, int repetitions);

 private:
  std::string start(Interrupts& interrupts);  // why not; empty if it runs
  ChildProcess::Answer receive(Interrupts& interrupts);
  std::string stopped(const ChildProcess::Answer& answer);  // drops the child; how it stopped
  // Why not every peer has answered; empty if all have, or at a signal.
  std::string ask(const Row& row, const RowPeers& named, int repetitions, Interrupts& interrupts,
                  std::vector<PeerTime>& times);

  PeerSettings settings_;
  ScratchFolder folder_;
  std::unique_ptr<ChildProcess> child_;
  std::string unusable_;
  int failures_ = 0;  // rows in a row
};

// "1.84x faster": ours against a peer's; empty if either has no time.
std::string comparison(const Measured& ours, const PeerTime& peer);
std::vector<std::string> peer_lines(const Measured& ours, const std::vector<PeerTime>& peers);
nlohmann::json to_json(const Measured& ours, const std::vector<PeerTime>& peers);  // "peers" of bench.schema.json

}  // namespace assay::bench
