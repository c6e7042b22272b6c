// main of every GoogleTest binary: a filter that leaves nothing to run is a failure, not a pass.
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  const int failed = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::fputs("no test matches the filter\n", stderr);
    return 1;
  }
  return failed;
}
