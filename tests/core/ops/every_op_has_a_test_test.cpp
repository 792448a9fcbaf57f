// A new op is one header in core/ops and one test file of the same name here.
#include <gtest/gtest.h>

#include <filesystem>

namespace {

namespace fs = std::filesystem;

TEST(EveryOp, has_a_test_file_of_its_name) {
  const fs::path root = ROWAN_SOURCE_DIR;
  int headers = 0;
  for (const auto& entry : fs::directory_iterator(root / "core/ops")) {
    if (entry.path().extension() != ".h") continue;
    ++headers;
    const fs::path test = root / "tests/core/ops" / (entry.path().stem().string() + "_test.cpp");
    EXPECT_TRUE(fs::exists(test)) << entry.path().filename() << " has no " << test;
  }
  EXPECT_GE(headers, 10);
}

}  // namespace
