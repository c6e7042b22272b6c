#include "runners/bench/peers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "golden/record.hpp"

namespace assay::bench {

using nlohmann::json;
using Event = ChildProcess::Event;

namespace {

constexpr size_t kLogLines = 3;
constexpr int kMostFailures = 3;

PeerTime none(const std::string& peer, const std::string& dtype, const std::string& problem) {
  return {.peer = peer, .version = "", .dtype = dtype, .times_ms = {}, .problem = problem};
}

// For the peers from the first that has not answered on, the same reason.
void give_reason(const json& peers, const std::string& problem, std::vector<PeerTime>& times) {
  for (size_t i = times.size(); i < peers.size(); ++i)
    times.push_back(none(peers[i].at("what"), peers[i].at("dtype"), problem));
}

json request(const Row& row, const RowPeers& named, int repetitions) {
  return {{"id", row.id},
          {"op", row.op},
          {"form", row.form},
          {"shape", row.point.sizes},
          {"gate", row.gate},
          {"attributes", row.point.attributes},
          {"peers", named.peers},
          {"inputs", row.point.optional_inputs},
          {"repetitions", repetitions}};
}

PeerTime peer_time(const json& answer) {
  if (answer.contains("error")) return none(answer.at("peer"), answer.at("dtype"), answer.at("error"));
  PeerTime time;
  time.peer = answer.at("peer").get<std::string>();
  time.version = answer.at("version").get<std::string>();
  time.dtype = answer.at("dtype").get<std::string>();
  time.error_of_scale = answer.at("error_of_scale").get<double>();
  time.times_ms = answer.at("times_ms").get<std::vector<double>>();
  if (time.times_ms.empty()) time.problem = "it named no times";
  return time;
}

}  // namespace

PeerTable parse_peers(const json& document, const std::filesystem::path& file, const Table& table) {
  check_schema(document, "bench_peers.schema.json", file);
  PeerTable peers;
  for (const auto& [id, entry] : document.at("rows").items())
    peers[id] = {.peers = entry.value("peers", json::array()), .none = entry.value("none", std::string())};
  std::set<std::string> rows;
  for (const Row& row : table.rows) {
    rows.insert(row.id);
    if (!peers.contains(row.id))
      throw InputError(file.string() + " /rows", "names neither peers of '" + row.id + "' nor why there are none");
  }
  for (const auto& [id, entry] : peers)
    if (!rows.contains(id)) throw InputError(file.string() + " /rows/" + id, "is no row of the bench");
  return peers;
}

PeerTable read_peers(const std::filesystem::path& root, const Table& table) {
  const std::filesystem::path file = root / "runners" / "bench" / "peers.json";
  return parse_peers(read_json(file), file, table);
}

std::vector<std::string> peers_command(const std::filesystem::path& root, const std::filesystem::path& python) {
  const std::filesystem::path interpreter = python.empty() ? golden::originals_python(root) : python;
  if (::access(interpreter.c_str(), X_OK) != 0 || !std::filesystem::is_regular_file(interpreter))
    throw HarnessError("--peers-python " + interpreter.string(), "is not a program that can be executed");
  return {std::filesystem::absolute(interpreter).string(), "-B", (root / "runners" / "bench" / "peers.py").string(),
          "--answers", std::to_string(ChildProcess::kAnswerDescriptor)};
}

ChildProcess::Answer Peers::receive(Interrupts& interrupts) {
  ChildProcess::Answer answer = child_->receive(settings_.timeout_s, interrupts);
  if (answer.event == Event::kStopped) child_.reset();
  return answer;
}

std::string Peers::stopped(const ChildProcess::Answer& answer) {
  std::string how = answer.event == Event::kTimeout ? fmt::format("was silent for {} s", settings_.timeout_s)
                                                    : fmt::format("ended ({})", answer.how);
  child_.reset();
  const std::filesystem::path log = folder_.path() / "log";
  if (const std::string lines = last_lines(log, kLogLines); !lines.empty()) how += "; its last output: " + lines;
  std::replace(how.begin(), how.end(), '\n', '|');
  std::error_code ignored;
  std::filesystem::remove(log, ignored);
  return how;
}

std::string Peers::start(Interrupts& interrupts) {
  child_ = std::make_unique<ChildProcess>(settings_.command, folder_.path() / "log");
  const ChildProcess::Answer answer = receive(interrupts);
  if (answer.event == Event::kStopped) return "";
  if (answer.event != Event::kLine) return "the peers' program " + stopped(answer);
  const json hello = json::parse(answer.line, nullptr, false);
  std::string why;
  if (!hello.is_object() || !(hello.contains("device") || hello.contains("unusable")))
    why = "the peers' program answered " + answer.line.substr(0, 80);
  else if (hello.contains("unusable"))
    why = hello.at("unusable").get<std::string>();
  else if (const std::string device = hello.at("device"); settings_.device.find(device) == std::string::npos)
    why = fmt::format("the peers' GPU is {}, the kernels' {}", device, settings_.device);
  if (!why.empty()) child_.reset();
  return why;
}

std::string Peers::ask(const Row& row, const RowPeers& named, int repetitions, Interrupts& interrupts,
                       std::vector<PeerTime>& times) {
  child_->send(request(row, named, repetitions).dump());
  for (;;) {
    const ChildProcess::Answer answer = receive(interrupts);
    if (answer.event == Event::kStopped) return "";
    if (answer.event != Event::kLine) return "the peers' program " + stopped(answer);
    try {
      const json line = json::parse(answer.line);
      if (line.at("id") != row.id) throw InputError("peers", "another row's answer");
      if (line.contains("end")) return "";
      if (!line.contains("doing"))
        times.push_back(peer_time(line));
      else if (settings_.progress)
        settings_.progress(
            fmt::format("{}: {} {}", row.id, line.at("peer").get<std::string>(), line.at("doing").get<std::string>()));
    } catch (const std::exception&) {  // of a foreign program: whatever it says is no reason to stop
      child_.reset();
      return "the peers' program answered " + answer.line.substr(0, 80);
    }
  }
}

std::vector<PeerTime> Peers::measure(const Row& row, const RowPeers& named, int repetitions) {
  if (named.peers.empty()) return {none("none", "", named.none)};
  std::vector<PeerTime> times;
  int signal = 0;
  if (unusable_.empty()) {
    Interrupts interrupts;
    if (!child_) unusable_ = start(interrupts);
    if (child_) {
      const std::string failure = ask(row, named, repetitions, interrupts, times);
      failures_ = failure.empty() ? 0 : failures_ + 1;
      give_reason(named.peers, failure.empty() ? "it was not answered for" : failure, times);
      if (failures_ == kMostFailures) unusable_ = fmt::format("{} rows in a row failed: {}", failures_, failure);
    }
    signal = interrupts.signal();
  }
  if (signal != 0) std::raise(signal);
  give_reason(named.peers, unusable_, times);
  return times;
}

std::string comparison(const Measured& ours, const PeerTime& peer) {
  if (!peer.problem.empty() || !ours.gate.passed || !(ours.median_ms > 0)) return "";
  const double ratio = quantile(peer.times_ms, 0.5) / ours.median_ms;
  return ratio >= 1 ? fmt::format("{:.2f}x faster", ratio) : fmt::format("{:.2f}x slower", 1 / ratio);
}

std::vector<std::string> peer_lines(const Measured& ours, const std::vector<PeerTime>& peers) {
  std::vector<std::string> lines;
  for (const PeerTime& peer : peers) {
    const std::string name = peer.version.empty() ? peer.peer : peer.peer + " " + peer.version;
    if (!peer.problem.empty()) {
      lines.push_back(fmt::format("    beside {} {}: no time: {}", name, peer.dtype, peer.problem));
      continue;
    }
    const std::string ratio = comparison(ours, peer);
    lines.push_back(fmt::format("    beside {:52} {:8} {:9.4f} ms  {}", name, peer.dtype, quantile(peer.times_ms, 0.5),
                                ratio.empty() ? "" : "ours is " + ratio));
  }
  return lines;
}

json to_json(const Measured& ours, const std::vector<PeerTime>& peers) {
  json list = json::array();
  for (const PeerTime& peer : peers) {
    json entry = {{"peer", peer.peer}, {"dtype", peer.dtype}};
    if (!peer.problem.empty()) {
      entry["problem"] = peer.problem;
    } else {
      const std::string ratio = comparison(ours, peer);
      entry.update({{"version", peer.version},
                    {"repetitions", peer.times_ms.size()},
                    {"median_ms", quantile(peer.times_ms, 0.5)},
                    {"p10_ms", quantile(peer.times_ms, 0.1)},
                    {"p90_ms", quantile(peer.times_ms, 0.9)},
                    {"error_of_scale", peer.error_of_scale},
                    {"ours", ratio.empty() ? json() : json(ratio)}});
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace assay::bench
