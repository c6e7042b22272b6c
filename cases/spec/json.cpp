#include "cases/spec/json.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "cases/spec/error.hpp"

namespace assay {

namespace {

constexpr size_t kDepthLimit = 64;

std::string errno_text(int code) { return std::generic_category().message(code); }

std::string located(const std::filesystem::path& file, std::string_view text, size_t offset) {
  offset = std::min(offset, text.size());
  size_t line = 1, column = 1;
  for (size_t i = 0; i + 1 < offset; ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n';
  }
  return fmt::format("{}:{}:{}", file.string(), line, column);
}

struct Descriptor {
  int value;
  ~Descriptor() { ::close(value); }
};

std::string size_text(size_t bytes) {
  for (const auto& [unit, name] : {std::pair{size_t{1} << 30, "GiB"}, {size_t{1} << 20, "MiB"}})
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{} {}", bytes / unit, name);
  return fmt::format("{} bytes", bytes);
}

// Reads the text and counts, so that the handler below can say where it is.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* count_;
};

// Sees every key before the document is built: nlohmann keeps the last of two equal keys without a word.
class StrictHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit StrictHandler(const size_t* position) : position_(position) {}

  std::string problem;
  size_t offset = 0;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t value, const string_t& text) override {
    return std::isfinite(value) || refuse("the number " + text + " is beyond float64");
  }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return enter(); }
  bool key(string_t& name) override {
    return keys_.back().insert(name).second || refuse("the key \"" + name + "\" stands twice in one object");
  }
  bool end_object() override { return leave(); }
  bool start_array(size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    offset = position;
    problem = error.what();
    // "[json.exception...] parse error at line 1, column 2: text": the place is printed in our own form.
    if (const size_t column = problem.find("column "); column != std::string::npos) {
      if (const size_t colon = problem.find(": ", column); colon != std::string::npos) problem.erase(0, colon + 2);
    } else if (const size_t bracket = problem.find("] "); bracket != std::string::npos) {
      problem.erase(0, bracket + 2);
    }
    // nlohmann 3.11.2 and 3.11.3 word an empty text differently.
    if (problem.find("unexpected end of input") != std::string::npos ||
        problem.find("empty input") != std::string::npos || problem.find("missing closing quote") != std::string::npos)
      problem = "the text ends in the middle of the document (truncated?): " + problem;
    return false;
  }

 private:
  bool enter() {
    keys_.emplace_back();
    return keys_.size() <= kDepthLimit || refuse(fmt::format("nested deeper than {} levels", kDepthLimit));
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }
  bool refuse(std::string text) {
    problem = std::move(text);
    offset = *position_;
    return false;
  }

  const size_t* position_;
  std::vector<std::set<std::string>> keys_;
};

void print_canonical(const nlohmann::json& value, std::string& out) {
  switch (value.type()) {
    case nlohmann::json::value_t::object: {
      out += '{';
      bool is_first = true;
      for (const auto& [name, member] : value.items()) {  // nlohmann::json keeps its keys sorted
        if (!is_first) out += ',';
        is_first = false;
        out += nlohmann::json(name).dump() + ':';
        print_canonical(member, out);
      }
      out += '}';
      break;
    }
    case nlohmann::json::value_t::array:
      out += '[';
      for (size_t i = 0; i < value.size(); ++i) {
        if (i) out += ',';
        print_canonical(value[i], out);
      }
      out += ']';
      break;
    case nlohmann::json::value_t::number_float:
      out += print_number(value.get<double>());
      break;
    default:
      out += value.dump();
  }
}

template <class T>
std::string print_shortest(T value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::filesystem::path& file) {
  size_t position = 0;
  StrictHandler handler(&position);
  const bool is_valid = nlohmann::json::sax_parse(CountingIterator(text.data(), &position),
                                                  CountingIterator(text.data() + text.size(), &position), &handler,
                                                  nlohmann::json::input_format_t::json, /*strict=*/true);
  if (!is_valid) throw InputError(located(file, text, handler.offset), handler.problem);
  return nlohmann::json::parse(text);
}

nlohmann::json read_json(const std::filesystem::path& file) { return parse_json(read_file(file), file); }

std::string print_number(float value) { return print_shortest(value); }
std::string print_number(double value) { return print_shortest(value); }

std::string canonical(const nlohmann::json& document) {
  std::string text;
  print_canonical(document, text);
  return text;
}

std::string read_file(const std::filesystem::path& file, size_t most_bytes) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const int code = errno;
    if (code == ENOENT || code == ENOTDIR) throw InputError(file.string(), "there is no such file");
    throw HarnessError(file.string(), "cannot open: " + errno_text(code));
  }
  const Descriptor closed_at_end{descriptor};
  struct stat about {};
  if (::fstat(descriptor, &about) != 0) throw HarnessError(file.string(), "cannot read: " + errno_text(errno));
  if (S_ISDIR(about.st_mode)) throw InputError(file.string(), "is a folder, not a file");
  if (!S_ISREG(about.st_mode)) throw InputError(file.string(), "is not a regular file");
  const auto require_size = [&](uintmax_t bytes) {
    if (bytes > most_bytes)
      throw InputError(file.string(), fmt::format("has {} bytes, more than {}", bytes, size_text(most_bytes)));
  };
  require_size(static_cast<uintmax_t>(about.st_size));
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw HarnessError(file.string(), "cannot read: " + errno_text(errno));
    text.append(buffer, static_cast<size_t>(count));
    require_size(text.size());  // it may have grown, and files of /proc say that they are empty
  }
}

}  // namespace assay
