// CacheWatch: whether a session's static cache stays where it is. Looked at from outside, through
// Session::state_addresses() and cache_allocations(); a session with another kind of cache is not looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cases/spec/subject.hpp"

namespace assay {

class CacheWatch {
 public:
  // Right after the session was started.
  CacheWatch(const Session& session, CacheKind cache) : session_(session), is_on_(cache == CacheKind::kStatic) {
    if (is_on_) addresses_ = session.state_addresses();
  }

  // After every call and reset. Every state has an address, the one it had at the start; allocations stay what they
  // were after the first call.
  void look();

  // Why this is no static cache, with the state's name; empty while it is one.
  const std::string& reason() const { return reason_; }

 private:
  std::string what_moved() const;

  const Session& session_;
  bool is_on_;
  std::vector<StateAddress> addresses_;
  std::optional<int64_t> allocations_;
  std::string reason_;
};

}  // namespace assay
