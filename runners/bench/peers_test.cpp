#include "runners/bench/peers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"

namespace assay::bench {
namespace {

using nlohmann::json;

constexpr const char* kHello = R"(echo '{"device": "made-up GPU"}' >&3)";

// A program that answers on descriptor 3 as peers.py does: what is said at the start, and what to each request.
class FakePeers : public ::testing::Test {
 protected:
  Peers peers(const std::string& begin, const std::string& each_request, double timeout_s = 20) {
    return Peers({.command = {"/bin/sh", "-c", begin + "\nwhile read -r request; do\n" + each_request + "\ndone"},
                  .device = "made-up GPU sm_1",
                  .timeout_s = timeout_s,
                  .progress = [this](const std::string& text) { progress_.push_back(text); }});
  }

  static Row row(const std::string& id = "rms_norm.x") {
    Row row;
    row.id = id;
    row.op = "rms_norm";
    row.point.sizes = {{"T", 4}, {"H", 6}};
    return row;
  }
  static RowPeers two() {
    return {.peers = {{{
                           "call",
                           "a",
                       },
                       {"what", "one norm"},
                       {"dtype", "float32"}},
                      {{"call", "b"}, {"what", "two norm"}, {"dtype", "tf32"}}},
            .none = ""};
  }
  static std::string answer(const std::string& text) { return "echo '" + text + "' >&3\n"; }
  static std::string timed(const std::string& peer, const std::string& dtype, const std::string& times) {
    return answer(R"({"id": "rms_norm.x", "peer": ")" + peer + R"(", "version": "9.1", "dtype": ")" + dtype +
                  R"(", "error_of_scale": 1e-7, "times_ms": )" + times + "}");
  }
  static std::string end() { return answer(R"({"id": "rms_norm.x", "end": true})"); }

  std::vector<std::string> progress_;
};

Measured ours(double median_ms, bool passed = true) {
  static Row row;
  row.op = "rms_norm";
  row.point.sizes = {{"T", 4}, {"H", 6}};
  Measured measured;
  measured.row = &row;
  measured.gate.passed = passed;
  measured.median_ms = median_ms;
  return measured;
}

TEST_F(FakePeers, TimesAndReasonsStandBesideTheRow) {
  Peers some = peers(
      kHello, answer(R"({"id": "rms_norm.x", "peer": "one norm", "doing": "float32"})") +
                  timed("one norm", "float32", "[3, 1, 2]") +
                  answer(R"({"id": "rms_norm.x", "peer": "two norm", "dtype": "tf32", "error": "absent"})") + end());
  for (int i = 0; i < 2; ++i) {  // one process for all rows
    const std::vector<PeerTime> times = some.measure(row(), two(), 3);
    ASSERT_EQ(times.size(), 2u);
    EXPECT_EQ(times[0].problem, "");
    EXPECT_EQ(times[0].times_ms, (std::vector<double>{3, 1, 2}));
    EXPECT_EQ(times[1].problem, "absent");
    EXPECT_EQ(comparison(ours(4), times[0]), "2.00x slower");
    EXPECT_EQ(comparison(ours(0.5), times[0]), "4.00x faster");
    EXPECT_EQ(comparison(ours(4, false), times[0]), "");
    EXPECT_EQ(comparison(ours(4), times[1]), "");
    const auto lines = peer_lines(ours(4), times);
    EXPECT_NE(lines.at(0).find("one norm 9.1"), std::string::npos) << lines[0];
    EXPECT_NE(lines.at(0).find("2.0000 ms  ours is 2.00x slower"), std::string::npos) << lines[0];
    EXPECT_NE(lines.at(1).find("two norm tf32: no time: absent"), std::string::npos) << lines[1];
    const json document = to_json(ours(4), times);
    EXPECT_EQ(document.at(0).at("median_ms"), 2.0);
    EXPECT_EQ(document.at(0).at("ours"), "2.00x slower");
    EXPECT_EQ(document.at(1), (json{{"peer", "two norm"}, {"dtype", "tf32"}, {"problem", "absent"}}));
    json whole = to_json(ours(4), Capabilities{.name = "x", .device = "y"});
    whole["peers"] = document;
    check_schema(whole, "bench.schema.json", "row");
    EXPECT_TRUE(to_json(ours(4, false), times).at(0).at("ours").is_null());
  }
  EXPECT_EQ(progress_, (std::vector<std::string>(2, "rms_norm.x: one norm float32")));
}

TEST_F(FakePeers, TheRequestIsTheRow) {
  const ScratchFolder folder;
  const std::filesystem::path file = folder.path() / "request";
  Peers some = peers(kHello, "echo \"$request\" > " + file.string() + "\n" + end());
  Row asked = row();
  asked.point.attributes = {{"epsilon", 0.5}};
  asked.point.optional_inputs = {"residual"};
  asked.gate = {{"T", 2}};
  some.measure(asked, two(), 7);
  EXPECT_EQ(read_json(file), json::parse(R"({
    "id": "rms_norm.x", "op": "rms_norm", "form": "", "shape": {"T": 4, "H": 6}, "gate": {"T": 2},
    "attributes": {"epsilon": 0.5}, "inputs": ["residual"], "repetitions": 7,
    "peers": [{"call": "a", "what": "one norm", "dtype": "float32"}, {"call": "b", "what": "two norm", "dtype": "tf32"}]})"));
}

TEST_F(FakePeers, AProgramThatEndsIsReplacedForTheNextRow) {
  const ScratchFolder folder;
  const std::string mark = (folder.path() / "ran").string();
  Peers some =
      peers(kHello, timed("one norm", "float32", "[1]") + "if [ ! -e " + mark + " ]; then touch " + mark +
                        "; echo 'illegal access' >&2; exit 3; fi\n" + timed("two norm", "tf32", "[2]") + end());
  const std::vector<PeerTime> first = some.measure(row(), two(), 1);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].problem, "");
  EXPECT_EQ(first[1].peer, "two norm");
  EXPECT_NE(first[1].problem.find("ended (exit 3); its last output: illegal access"), std::string::npos)
      << first[1].problem;
  const std::vector<PeerTime> second = some.measure(row(), two(), 1);
  EXPECT_EQ(second.at(1).problem, "");
}

TEST_F(FakePeers, OneThatAlwaysFailsIsGivenUp) {
  const ScratchFolder folder;
  const std::filesystem::path starts = folder.path() / "starts";
  Peers some = peers("echo x >> " + starts.string() + "\n" + kHello, "kill -KILL $$");
  for (int i = 0; i < 6; ++i) {
    const std::vector<PeerTime> times = some.measure(row(), two(), 1);
    ASSERT_EQ(times.size(), 2u);
    EXPECT_NE(times[1].problem.find("SIGKILL"), std::string::npos) << times[1].problem;
  }
  EXPECT_EQ(std::filesystem::file_size(starts), 6u);  // three lines
}

TEST_F(FakePeers, SilenceEnds) {
  Peers some = peers(kHello, timed("one norm", "float32", "[1]") + "sleep 60", 0.3);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<PeerTime> times = some.measure(row(), two(), 1);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].problem, "");
  EXPECT_NE(times[1].problem.find("silent for 0.3 s"), std::string::npos) << times[1].problem;
}

TEST_F(FakePeers, WhatCannotStartIsSaidOfEachPeer) {
  const auto problem = [this](const std::string& begin) {
    Peers some = peers(begin, end());
    const std::vector<PeerTime> times = some.measure(row(), two(), 1);
    EXPECT_EQ(times.size(), 2u);
    EXPECT_EQ(times.at(0).problem, times.at(1).problem);
    EXPECT_EQ(some.measure(row(), two(), 1).at(1).problem, times.at(1).problem);
    return times.at(0).problem;
  };
  EXPECT_EQ(problem(answer(R"({"unusable": "no torch"})")), "no torch");
  EXPECT_NE(problem("echo Traceback >&2; exit 1").find("ended (exit 1); its last output: Traceback"),
            std::string::npos);
  EXPECT_NE(problem("echo hello >&3").find("answered hello"), std::string::npos);
  EXPECT_EQ(problem(answer(R"({"device": "another GPU"})")),
            "the peers' GPU is another GPU, the kernels' made-up GPU sm_1");
  Peers missing({.command = {"/no/such/python", "peers.py"}, .device = "x"});
  EXPECT_NE(missing.measure(row(), two(), 1).at(1).problem.find("exit 127"), std::string::npos);
  Peers none({.unusable = "no Python"});
  EXPECT_EQ(none.measure(row(), two(), 1).at(1).problem, "no Python");
}

TEST_F(FakePeers, NonsenseIsTheEndOfARowOnly) {
  for (const std::string& nonsense : {answer("Traceback"), answer(R"({"id": "another.row", "end": true})"),
                                      answer(R"({"id": "rms_norm.x", "peer": "one norm"})"), answer("[1]")}) {
    Peers some = peers(kHello, nonsense + end());
    const std::vector<PeerTime> times = some.measure(row(), two(), 1);
    ASSERT_EQ(times.size(), 2u) << nonsense;
    EXPECT_NE(times[0].problem.find("the peers' program answered"), std::string::npos) << times[0].problem;
  }
  EXPECT_EQ(peers(kHello, end()).measure(row(), two(), 1).at(0).problem, "it was not answered for");
  EXPECT_EQ(peers(kHello, timed("one norm", "float32", "[]") + end()).measure(row(), two(), 1).at(0).problem,
            "it named no times");
}

TEST(PeerTable, EveryRowOfTheRepositoryHasPeersOrAReason) {
  const Table table = read_table(ASSAY_ROOT);
  const PeerTable peers = read_peers(ASSAY_ROOT, table);
  EXPECT_EQ(peers.size(), table.rows.size());
  for (const auto& [id, named] : peers) EXPECT_NE(named.peers.empty(), named.none.empty()) << id;
}

TEST(PeerTable, ARowWithoutAnEntryIsRefused) {
  Table table;
  table.rows.resize(2);
  table.rows[0].id = "a.x";
  table.rows[1].id = "b.x";
  const auto parse = [&table](const std::string& rows) {
    return parse_peers(json::parse(R"({"schema": "assay.bench_peers/1", "rows": )" + rows + "}"), "peers.json", table);
  };
  const std::string one = R"("a.x": {"none": "nobody computes this"})";
  const std::string two = R"("b.x": {"peers": [{"call": "f", "what": "g", "dtype": "float32"}]})";
  const PeerTable whole = parse("{" + one + ", " + two + "}");
  EXPECT_EQ(whole.at("a.x").none, "nobody computes this");
  EXPECT_EQ(whole.at("b.x").peers.size(), 1u);
  EXPECT_THROW(parse("{" + one + "}"), InputError);
  EXPECT_THROW(parse("{" + one + ", " + two + R"(, "c.x": {"none": "nobody computes this"}})"), InputError);
  EXPECT_THROW(parse(R"({"a.x": {}, )" + two + "}"), InputError);
}

TEST(PeerTable, AReasonIsARowsOnlyPeer) {
  Peers peers({.unusable = "not asked"});
  const std::vector<PeerTime> times = peers.measure(Row(), {.peers = json::array(), .none = "nobody computes this"}, 1);
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times[0].problem, "nobody computes this");
}

// Every call of peers.json is a function of peer_calls.py, and every op is one that peer_inputs.py draws.
TEST(PeerTable, TheProgramKnowsEveryCall) {
  if (output_of({"python3", "-c", "print(1)"}) != "1") GTEST_SKIP() << "no python3";
  const std::string folder = std::string(ASSAY_ROOT) + "/runners/bench";
  const std::string program =
      "import json, sys; sys.dont_write_bytecode = True; sys.path.insert(0, '" + folder +
      "'); import peer_calls, peer_inputs\n"
      "rows = json.load(open('" +
      folder +
      "/peers.json'))['rows']\n"
      "calls = {peer['call'] for row in rows.values() for peer in row.get('peers', [])}\n"
      "narrow = {row.split('.')[0] for row, entry in rows.items() for peer in entry.get('peers', [])"
      " if peer['dtype'].endswith('16')}\n"
      "print(sorted(calls - set(peer_calls.BUILDERS)), sorted(set(peer_calls.BUILDERS) - calls),"
      " sorted({row.split('.')[0] for row in rows} - set(peer_inputs.DRAWS)), sorted(narrow - "
      "set(peer_inputs.NARROW)))";
  EXPECT_EQ(output_of({"python3", "-c", program}), "[] [] [] []");
}

}  // namespace
}  // namespace assay::bench
