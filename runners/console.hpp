// Console: the view of a run for people. One aligned line a case; what failed in full, with the command that repeats
// it; a summary. On a terminal also a progress line and colour (none with NO_COLOR set); plain lines in a pipe.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "runners/verdict.hpp"

namespace assay {

struct SubjectLine {
  std::string name, device;
  std::vector<std::string> versions;
};

class Console {
 public:
  Console(std::FILE* out, bool is_terminal, bool has_colour);
  static Console standard();  // stdout

  void set_widths(const std::vector<std::string>& subjects, const std::vector<std::string>& cases);
  void header(const std::vector<SubjectLine>& subjects, int64_t cases);
  void say(const std::string& text);  // "# text"
  void progress(const std::string& subject, const std::string& case_id, int64_t done, int64_t all);
  void row(const Verdict& verdict);
  void summary(const std::vector<Verdict>& rows, const std::vector<Status>& not_allowed, const std::string& results,
               const std::vector<std::string>& closing);  // closing: lines before the last

 private:
  void clear();
  std::string colour(Status status, const std::string& text) const;
  void print(const std::string& text);

  std::FILE* out_;
  bool is_terminal_, has_colour_, has_progress_ = false;
  size_t subject_width_ = 0, case_width_ = 0;
};

// The lines of one row, without colour: "PASS  reference  mamba2/logits.edges  23 probes  used  4 %  0.31 s".
std::vector<std::string> row_lines(const Verdict& verdict, size_t subject_width, size_t case_width);

// 0, 1, 3 or 77 of design.md section 8.
int exit_code(const std::vector<Verdict>& rows, const std::vector<Status>& not_allowed, bool finished);

// An argument as a shell reads it.
std::string shell_quoted(const std::string& argument);

}  // namespace assay
