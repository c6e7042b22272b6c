#include "runners/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string_view>

#include "runners/invocation.hpp"

namespace assay {

namespace {

constexpr size_t kStatusWidth = 9;

std::string used_text(double used) {
  if (!std::isfinite(used)) return " inf %";
  if (used >= 10) return fmt::format("{:.3g} x", used);
  return fmt::format("{:3.0f} %", 100 * used);
}

std::string index_text(const golden::Finding& first) {
  if (first.what == "missing" || first.what == "token" || first.probe.starts_with("weights")) return "";
  std::string text = fmt::format(" [{}", first.row);
  if (first.position >= 0) text += fmt::format(",{}", first.position);
  for (const int64_t coordinate : first.index) text += fmt::format(",{}", coordinate);
  return text + "]";
}

std::string finding_text(const Verdict& verdict) {
  const golden::Finding& first = *verdict.first;
  const std::string leg = fmt::format("leg {}, row {}: ", verdict.leg, first.row);
  if (first.what == "missing") return leg + "the subject did not return this probe";
  if (first.probe.starts_with("weights")) return fmt::format("leg {}: {}", verdict.leg, first.detail);
  if (first.what == "token")
    return leg +
           fmt::format("expected token {:.0f}, got {:.0f} at position {}", first.expected, first.got, first.position);
  if (first.what == "shape") return leg + (first.detail.empty() ? "wrong shape" : first.detail);
  // Outside a golden's sample no number is expected, only a finite one; the rest of the detail says where that is.
  constexpr std::string_view kAnyFinite = "expected a finite value", kWhich = ", which is ";
  const bool is_any_finite = first.what == "not finite" && first.detail.starts_with(kAnyFinite);
  std::string detail = first.detail, text = leg;
  if (is_any_finite) {
    text += fmt::format("{}, got {:.9g}", kAnyFinite, first.got);
    detail.erase(0, kAnyFinite.size());
    if (detail.starts_with(kWhich)) detail.erase(0, kWhich.size());
  } else {
    text += fmt::format("expected {:.9g}  got {:.9g}", first.expected, first.got);
  }
  const double difference = std::abs(first.got - first.expected);
  if (std::isfinite(difference)) text += fmt::format("  |diff| {:.2g}", difference);
  text += fmt::format("  bound {:.2g}", first.bound);
  if (std::isfinite(difference / first.bound)) text += fmt::format(" ({:.3g}x)", difference / first.bound);
  text += fmt::format("  {} of {} {}", first.bad, first.of, first.what == "norm" ? "norms" : "elements");
  if (first.what != "value" && first.what != "norm") text += " (" + first.what + ")";
  return detail.empty() ? text : text + "  " + detail;
}

bool is_bad(Status status, const std::vector<Status>& not_allowed) {
  return !is_allowed(status) || std::count(not_allowed.begin(), not_allowed.end(), status) > 0;
}

std::string indented(const std::string& text) {
  std::string result = "      ";
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "      ";
  }
  return result;
}

}  // namespace

std::vector<std::string> row_lines(const Verdict& v, size_t subject_width, size_t case_width) {
  std::string line = fmt::format("{:<{}}  {:<{}}  {:<{}}", status_name(v.status), kStatusWidth, v.subject,
                                 subject_width, v.case_id, case_width);
  std::vector<std::string> more;
  switch (v.status) {
    case Status::kPass:
    case Status::kMarginal:
    case Status::kWaived:
      line += fmt::format("  {:4} probes   used {}  {:6.2f} s", v.probes, used_text(v.used), v.seconds);
      if (v.status == Status::kMarginal) line += "  by " + v.used_by;
      break;
    case Status::kSkip:
      line += fmt::format("  {}: {}", v.skip ? skip_name(*v.skip) : "", v.reason);
      break;
    default:
      if (v.first)
        line += fmt::format("  first at {}{}{}", v.first->probe, index_text(*v.first),
                            v.first->step < 0 ? "" : fmt::format(" step {}", v.first->step));
      else
        line += fmt::format("  {:.2f} s", v.seconds);
      if (v.first) more.push_back(indented(finding_text(v)));
      if (!v.first || v.status != Status::kFail) more.push_back(indented(v.reason));
      more.push_back(indented("repeat:  " + v.repeat));
  }
  std::vector<std::string> lines{line};
  // Near-ties and legs left out belong to the verdict; a plain count of judged tokens does not need a line.
  for (const std::string& note : v.notes)
    if (note.find("near-tie") != std::string::npos || note.starts_with("left out") || note.starts_with("repetitions"))
      lines.push_back(indented(note));
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

int exit_code(const std::vector<Verdict>& rows, const std::vector<Status>& not_allowed, bool finished) {
  if (!finished) return kExitHarness;
  if (rows.empty()) return kExitUsage;
  if (std::any_of(rows.begin(), rows.end(), [&](const Verdict& row) { return is_bad(row.status, not_allowed); }))
    return kExitVerdict;
  const bool all_skipped =
      std::all_of(rows.begin(), rows.end(), [](const Verdict& row) { return row.status == Status::kSkip; });
  return all_skipped ? kExitSkipped : kExitAllowed;
}

std::string shell_quoted(const std::string& argument) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string("_-./:=+,@%").find(c) != std::string::npos;
  };
  if (!argument.empty() && std::all_of(argument.begin(), argument.end(), is_plain)) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Console::Console(std::FILE* out, bool is_terminal, bool has_colour)
    : out_(out), is_terminal_(is_terminal), has_colour_(has_colour) {}

Console Console::standard() {
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  const char* no_colour = std::getenv("NO_COLOR");
  return Console(stdout, is_terminal, is_terminal && !(no_colour && *no_colour));
}

void Console::set_widths(const std::vector<std::string>& subjects, const std::vector<std::string>& cases) {
  for (const std::string& subject : subjects) subject_width_ = std::max(subject_width_, subject.size());
  for (const std::string& case_id : cases) case_width_ = std::max(case_width_, case_id.size());
}

void Console::header(const std::vector<SubjectLine>& subjects, int64_t cases) {
  std::string text;
  for (const SubjectLine& subject : subjects) {
    if (subjects.size() > 1) text += subject.name + ": ";
    text += subject.device;
    for (const std::string& version : subject.versions) text += (subjects.size() > 1 ? ", " : " . ") + version;
    text += " . ";
  }
  say(fmt::format("{}{} case{}, {} subject{}", text, cases, cases == 1 ? "" : "s", subjects.size(),
                  subjects.size() == 1 ? "" : "s"));
}

void Console::say(const std::string& text) { print("# " + text + "\n"); }

void Console::progress(const std::string& subject, const std::string& case_id, int64_t done, int64_t all) {
  if (!is_terminal_) return;
  clear();
  std::fputs(fmt::format("{}  {}  {}/{}", subject, case_id, done, all).c_str(), out_);
  std::fflush(out_);
  has_progress_ = true;
}

void Console::clear() {
  if (has_progress_) std::fputs("\r\033[K", out_);
  has_progress_ = false;
}

std::string Console::colour(Status status, const std::string& text) const {
  if (!has_colour_) return text;
  const char* code = "31";
  if (status == Status::kPass) code = "32";
  if (status == Status::kMarginal || status == Status::kWaived) code = "33";
  if (status == Status::kSkip) code = "36";
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

void Console::print(const std::string& text) {
  clear();
  std::fputs(text.c_str(), out_);
  std::fflush(out_);
}

void Console::row(const Verdict& verdict) {
  const std::vector<std::string> lines = row_lines(verdict, subject_width_, case_width_);
  const std::string status(status_name(verdict.status));
  std::string text = colour(verdict.status, status) + lines[0].substr(status.size()) + "\n";
  for (size_t i = 1; i < lines.size(); ++i) text += lines[i] + "\n";
  print(text);
}

void Console::summary(const std::vector<Verdict>& rows, const std::vector<Status>& not_allowed,
                      const std::string& results, const std::vector<std::string>& closing) {
  std::vector<std::string> subjects;
  std::map<std::string, std::map<Status, int64_t>> counts;
  std::map<Status, int64_t> seen{{Status::kPass, 0}};
  std::map<std::string, int64_t> skips;
  for (const Verdict& row : rows) {
    if (!counts.contains(row.subject)) subjects.push_back(row.subject);
    ++counts[row.subject][row.status];
    ++seen[row.status];
    if (row.skip) ++skips[row.subject + " " + std::string(skip_name(*row.skip))];
  }
  std::string text = fmt::format("\n{:<{}}", "subject", std::max<size_t>(subject_width_, 7));
  for (const auto& [status, count] : seen) text += fmt::format("  {}", status_name(status));
  text += "\n";
  for (const std::string& subject : subjects) {
    text += fmt::format("{:<{}}", subject, std::max<size_t>(subject_width_, 7));
    for (const auto& [status, count] : seen)
      text += fmt::format("  {:>{}}", counts[subject][status], status_name(status).size());
    text += "\n";
  }
  for (const auto& [reason, count] : skips) text += fmt::format("skipped: {} {}\n", count, reason);
  for (const Verdict& row : rows)
    if (row.status == Status::kMarginal)
      text +=
          fmt::format("marginal: {} {} used {} by {}\n", row.subject, row.case_id, used_text(row.used), row.used_by);
  for (const Verdict& row : rows)
    if (is_bad(row.status, not_allowed))
      text +=
          fmt::format("{} {} {}{}\n", colour(row.status, fmt::format("{:<{}}", status_name(row.status), kStatusWidth)),
                      row.subject, row.case_id, row.first ? "  first at " + row.first->probe : "");
  for (const std::string& line : closing) text += line + "\n";
  print(text + "results: " + results + "\n");
}

}  // namespace assay
