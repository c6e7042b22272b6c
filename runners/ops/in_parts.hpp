// in_parts: a loop over [0, count) on all cores, for host work that is too slow on one: drawing and scanning tensors of
// gigabytes. work(begin, end) is called from several threads at once and must not throw.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace assay {

// Every begin is a multiple of 4, the elements of one Philox block. Small counts stay on the calling thread.
template <class Work>
void in_parts(int64_t count, Work work) {
  constexpr int64_t kLeast = int64_t{1} << 20;  // a thread costs more than so few elements
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t parts = std::clamp(count / kLeast, int64_t{1}, cores);
  const int64_t length = (count / parts + 4) / 4 * 4;
  std::vector<std::jthread> threads;
  for (int64_t begin = length; begin < count; begin += length)
    threads.emplace_back([&work, begin, end = std::min(begin + length, count)] { work(begin, end); });
  work(int64_t{0}, std::min(length, count));
}

}  // namespace assay
