#include "runners/group_pool.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace assay {

namespace {

class Queue {
 public:
  explicit Queue(std::vector<CaseGroup> groups) : groups_(std::move(groups)) {}

  // The first group whose subject may start another; waits while there is none. Nothing when no group is left.
  std::optional<CaseGroup> take() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (groups_.empty()) return std::nullopt;
      const auto found = std::find_if(groups_.begin(), groups_.end(), [this](const CaseGroup& group) {
        return running_[group.worker->argument()] < group.limit;
      });
      if (found != groups_.end()) {
        CaseGroup group = std::move(*found);
        groups_.erase(found);
        ++running_[group.worker->argument()];
        return group;
      }
      changed_.wait(lock);
    }
  }

  void ended(const std::string& subject) {
    const std::lock_guard lock(mutex_);
    --running_[subject];
    changed_.notify_all();
  }

  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<CaseGroup> groups_;
  std::map<std::string, int64_t> running_;  // groups of each subject
  std::exception_ptr error_;                // the first
};

}  // namespace

void run_groups(std::vector<CaseGroup> groups, int64_t jobs, Interrupts& interrupts,
                const std::function<void(SubjectProcess&, const Case&)>& run_case) {
  const int64_t threads = std::min<int64_t>(jobs, static_cast<int64_t>(groups.size()));
  Queue queue(std::move(groups));
  const auto work = [&] {
    while (std::optional<CaseGroup> group = queue.take()) {
      try {
        for (const Case* test_case : group->cases) {
          if (interrupts.is_stopped()) break;
          run_case(*group->worker, *test_case);
        }
      } catch (...) {
        queue.fail(std::current_exception());
        interrupts.stop();
      }
      const std::string subject = group->worker->argument();
      group->worker.reset();  // its process is gone before another takes its place
      queue.ended(subject);
    }
  };
  {
    std::vector<std::jthread> pool;
    for (int64_t i = 0; i < threads; ++i) pool.emplace_back(work);
  }
  queue.rethrow();
}

}  // namespace assay
