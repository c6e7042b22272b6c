// A static cache: where it lies, what a second request sees of the first, and its end.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "reference/testing/models.hpp"
#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

using Row = std::vector<int64_t>;

const Row kPrompt = {10, 35, 42, 45, 30, 17, 12, 37, 20, 51, 3, 8, 44, 29};

Row slice(const Row& row, size_t first, size_t count) {
  return Row(row.begin() + static_cast<std::ptrdiff_t>(first),
             row.begin() + static_cast<std::ptrdiff_t>(first + count));
}

std::map<std::string, uintptr_t> addresses(const Session& session) {
  std::map<std::string, uintptr_t> found;
  for (const auto& [name, address] : session.state_addresses()) found.emplace(name, address);
  return found;
}

// Families with keys and values, a convolution, and each kind of recurrence.
TEST(StaticCache, StaysWhereItIsAndForgetsItsFirstRequest) {
  for (const char* id : {"jamba/tiny", "zamba2/awkward", "falcon_h1/tiny", "qwen3_next/tiny", "lfm2/tiny"}) {
    const auto model = load(id);
    const auto used = model->start({.rows = 2, .cache = CacheKind::kStatic, .limit = 9});
    const std::map<std::string, uintptr_t> at_start = addresses(*used);
    const int64_t allocations = used->cache_allocations();
    EXPECT_EQ(at_start.size(), used->states().size()) << id;
    EXPECT_EQ(allocations, static_cast<int64_t>(at_start.size())) << id;
    std::set<uintptr_t> different;
    for (const auto& [name, address] : at_start) different.insert(address);
    EXPECT_EQ(different.size(), at_start.size()) << id;
    EXPECT_FALSE(different.contains(0)) << id;
    EXPECT_GT(model->memory().current_bytes, model->memory().peak_weight_bytes) << "the caches are counted too";

    logits(*used, {slice(kPrompt, 0, 7), slice(kPrompt, 7, 7)});
    logits(*used, {{9}, {4}});
    used->reorder({1, 0});
    logits(*used, {{1}, {2}});
    EXPECT_EQ(used->length(), 9);
    used->reset();
    EXPECT_EQ(addresses(*used), at_start) << id;

    // The second request is shorter than the first: columns of the first lie behind its own.
    const auto fresh = model->start({.rows = 2, .cache = CacheKind::kDynamic});
    EXPECT_TRUE(fresh->state_addresses().empty());
    for (const auto& part : {std::vector<Row>{slice(kPrompt, 3, 3), slice(kPrompt, 9, 3)}, {{6}, {5}}})
      EXPECT_TRUE(at::equal(logits(*used, part), logits(*fresh, part))) << id;
    for (size_t i = 0; i < fresh->states().size(); ++i)
      EXPECT_TRUE(at::equal(to_aten(used->states()[i].value), to_aten(fresh->states()[i].value))) << id;
    EXPECT_EQ(addresses(*used), at_start) << id;
    EXPECT_EQ(used->cache_allocations(), allocations) << id;

    expect_parts(refusal<InputError>([&] {
                   logits(*used, {Row(6, 1), Row(6, 2)});
                 }),
                 {"limit of 9 columns", "holds 4", "6 more make 10", "reset", "10 or more"});
    EXPECT_EQ(used->length(), 4);
  }
}

}  // namespace
}  // namespace assay::reference
