// The checks of the source tree: this tree passes them, and each rule catches what it is there for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_command.h"
#include "tests/support/temp_dir.h"

namespace rowan::test {
namespace {

using ::testing::HasSubstr;

CommandResult check(const std::string& script, const std::string& root) {
  return run_command({"python3", std::string(ROWAN_SOURCE_DIR) + "/tools/" + script, root});
}

struct Case {
  std::string file;
  std::string text;
  std::string message;  // "" when nothing is wrong with it
};

// One tree with all the files, and two headers that they may include; every message must stand in a line that names its file.
void expect_messages(const std::string& script, std::vector<Case> cases) {
  const TempDir tree;
  cases.push_back({"core/tensor.h", "#pragma once\n", ""});
  cases.push_back({"optim/optimizer.h", "#pragma once\n#include \"core/tensor.h\"\n", ""});
  bool all_clean = true;
  for (const Case& c : cases) {
    std::filesystem::create_directories(std::filesystem::path(tree.file(c.file)).parent_path());
    std::ofstream(tree.file(c.file)) << c.text;
    all_clean = all_clean && c.message.empty();
  }
  const CommandResult result = check(script, tree.path().string());
  EXPECT_EQ(result.exit_code, all_clean ? 0 : 1) << result.err;
  for (const Case& c : cases) {
    std::string said;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(c.file + ":", 0) == 0) said += line + "\n";
    }
    if (c.message.empty()) {
      EXPECT_EQ(said, "") << c.text;
    } else {
      EXPECT_THAT(said, HasSubstr(c.message)) << c.file << ": " << c.text;
    }
  }
}

TEST(SourceChecks, this_tree_passes) {
  for (const char* script : {"check_includes.py", "check_style.py"}) {
    const CommandResult result = check(script, ROWAN_SOURCE_DIR);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  }
}

TEST(SourceChecks, includes_go_one_way_and_libraries_stay_in_their_place) {
  expect_messages("check_includes.py",
                  {{"core/a.cpp", "#include \"optim/optimizer.h\"\n", "core must not include optim"},
                   {"layers/a.cpp", "#include \"optim/optimizer.h\"\n", "layers must not include optim"},
                   {"train/a.cpp", "#include \"tensor.h\"\n", "does not exist"},
                   {"core/circle.h", "#pragma once\n#include \"core/circle.h\"\n", "core/circle.h -> core/circle.h"},
                   {"train/trainer.cpp", "#include <hdf5.h>\n", "HDF5"},
                   {"core/tensor.cpp", "#include <cblas.h>\n", "BLAS"},
                   {"core/format.cpp", "#include <fmt/format.h>\n", "fmt"},
                   {"train/a.h", "#pragma once\n#include <nlohmann/json.hpp>\n", "a header that is installed must not need"},
                   {"train/b.cpp", "#include <absl/any.h>\n", "unknown"},
                   {"train/good.cpp", "#include \"core/tensor.h\"\n#include \"optim/optimizer.h\"\n#include <vector>\n", ""},
                   {"train/checkpoint_writer.cpp", "#include <hdf5.h>\n", ""},
                   {"core/kernels/gemm.cpp", "#include <cblas.h>\n#include <dnnl.h>\n", ""}});
}

TEST(SourceChecks, style_rules_catch_what_they_name) {
  expect_messages("check_style.py", {{"core/abort.cpp", "void f() {\n  std::abort();\n}\n", "core/abort.cpp:2: std::abort("},
                                     {"core/exit.cpp", "void f() { exit(1); }\n", "never ends the program"},
                                     {"train/print.cpp", "void f() { std::cerr << 1; }\n", "does not print"},
                                     {"train/open.cpp", "int f() { return ::open(\"x\", 0); }\n", "train/*file*"},
                                     {"optim/throw.cpp", "void f() { throw std::runtime_error(\"x\"); }\n", "rowan::Error"},
                                     {"core/rand.cpp", "int f() { return std::rand(); }\n", "core/rng.h"},
                                     {"core/strtod.cpp", "double f(const char* s) { return std::strtod(s, nullptr); }\n", "locale"},
                                     {"core/using.h", "#pragma once\nusing namespace std;\n", "header must not change"},
                                     {"core/once.h", "int f();\n", "#pragma once is missing"},
                                     {"core/left.cpp",
                                      "// TO"
                                      "DO: finish\n",
                                      "left to do"},
                                     {"core/long.cpp", std::string(401, '\n'), "401 lines"},
                                     {"core/comment.cpp",
                                      "// abort() would end it\nconst char* s = \"exit(1) \\\" std::cout\";\nint at_exit();\n", ""},
                                     {"tools/print.cpp", "void f() { std::cout << 1; }\n", "print through tools/output.h"},
                                     {"tools/output.cpp", "void f() { fmt::print(\"a\"); }\n", ""}});
}

TEST(SourceChecks, a_tree_without_fault_passes) {
  expect_messages("check_includes.py", {});
  expect_messages("check_style.py", {});
}

}  // namespace
}  // namespace rowan::test
