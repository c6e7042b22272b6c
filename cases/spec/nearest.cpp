#include "cases/spec/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace assay {

namespace {

// Beyond it nobody sees a misspelling, and the table below would have the square of it.
constexpr size_t kLongest = 256;

// Insertions, deletions, substitutions, and swaps of two neighbours.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::vector<std::string> nearest(const std::string& wrong, const std::vector<std::string>& known) {
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& name : known) {
    if (std::max(wrong.size(), name.size()) > kLongest) continue;
    const size_t distance = edit_distance(wrong, name);
    const bool is_part = wrong.size() >= 3 && name.find(wrong) != std::string::npos;
    if (is_part || distance <= std::max<size_t>(1, std::max(wrong.size(), name.size()) / 3))
      ranked.emplace_back(distance, name);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (const auto& entry : ranked)
    if (names.size() < 3) names.push_back(entry.second);
  return names;
}

std::string nearest_list(const std::string& wrong, const std::vector<std::string>& known) {
  constexpr size_t kShown = 8;
  if (known.empty()) return "(none)";
  std::vector<std::string> names = nearest(wrong, known);
  const bool is_close = !names.empty();
  // The reader still wants to see what there is.
  if (!is_close)
    names.assign(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), kShown)));
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  if (is_close) return text;
  return "none is close; there is " + text + (known.size() > kShown ? ", ..." : "");
}

}  // namespace assay
