// What the documents show of a terminal is what the program prints. In a block of a document, every line `$ rowan ...` whose output
// does not depend on the machine is run here, from the top of the tree, and the lines up to the next `$` or the block's end are
// compared with what it printed, stdout first.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_command.h"

namespace rowan::test {
namespace {

struct Shown {
  std::string command;  // without "$ "
  std::string output;
};

std::vector<Shown> shown_in(const std::string& path) {
  std::vector<Shown> out;
  std::ifstream file(path);
  bool in_block = false, after_command = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("```", 0) == 0) {
      in_block = !in_block;
      after_command = false;
    } else if (in_block && line.rfind("$ ", 0) == 0) {
      after_command = line.rfind("$ rowan ", 0) == 0;
      if (after_command) out.push_back({line.substr(2), ""});
    } else if (in_block && after_command) {
      out.back().output += line + "\n";
    }
  }
  return out;
}

// Words at spaces; documents show nothing that needs quotes.
std::vector<std::string> words(const std::string& command) {
  std::vector<std::string> out;
  std::istringstream in(command);
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

TEST(Readme, shows_what_the_program_prints) {
  const std::vector<Shown> all = shown_in(ROWAN_SOURCE_DIR "/README.md");
  int compared = 0;
  for (const Shown& shown : all) {
    if (shown.command.rfind("rowan config ", 0) != 0) continue;
    std::vector<std::string> arguments = words(shown.command);
    arguments[0] = ROWAN_BINARY;
    const CommandResult result = run_command(arguments, {.directory = ROWAN_SOURCE_DIR});
    EXPECT_EQ(result.out + result.err, shown.output) << shown.command;
    ++compared;
  }
  EXPECT_GE(compared, 1);
}

}  // namespace
}  // namespace rowan::test
