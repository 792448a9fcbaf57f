// Tiny runs made by the commands themselves, in a directory of the test's own.
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_command.h"
#include "tests/support/small_run.h"
#include "tests/support/started_command.h"
#include "tests/support/temp_dir.h"

namespace rowan::test {

class CommandRun {
 public:
  CommandRun() {
    write("text.txt", small_text());
    write("small.toml", small_config(path("text.txt")));
  }

  std::string path(const std::string& name) const { return dir_.file(name); }
  std::string config() const { return path("small.toml"); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  static CommandResult rowan(std::vector<std::string> arguments, const CommandOptions& options = {}) {
    arguments.insert(arguments.begin(), ROWAN_BINARY);
    return run_command(arguments, options);
  }

  // rowan train small.toml --out <name> --set ..., on one thread and with a schedule that does not depend on the steps.
  std::vector<std::string> train_arguments(const std::string& name, const std::vector<std::string>& sets = {}) const {
    std::vector<std::string> arguments = {"train", config(), "--out", path(name)};
    append_sets(arguments, {"train.threads=1", "train.schedule.kind=constant"});
    append_sets(arguments, sets);
    return arguments;
  }
  CommandResult train(const std::string& name, const std::vector<std::string>& sets = {}) const {
    return rowan(train_arguments(name, sets));
  }
  CommandResult resume(const std::string& name, const std::vector<std::string>& sets = {}) const {
    std::vector<std::string> arguments = {"resume", path(name)};
    append_sets(arguments, sets);
    return rowan(arguments);
  }
  StartedCommand start(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), ROWAN_BINARY);
    return StartedCommand(arguments, path("started.out"), path("started.err"));
  }

  std::string digest(const std::string& name) const { return rowan({"inspect", "--digest", path(name)}).out; }
  bool exists(const std::string& name) const { return std::filesystem::exists(path(name)); }
  std::vector<std::string> names_in(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path(name))) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  // The whole lines of a run's metrics.jsonl with this event.
  std::vector<nlohmann::json> events(const std::string& name, const std::string& event) const {
    std::vector<nlohmann::json> found;
    std::istringstream lines(read_all(path(name) + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      nlohmann::json object = nlohmann::json::parse(line);
      if (object.at("event") == event) found.push_back(std::move(object));
    }
    return found;
  }
  std::vector<std::pair<int64_t, double>> losses(const std::string& name) const {
    std::vector<std::pair<int64_t, double>> out;
    for (const auto& e : events(name, "train")) out.emplace_back(e.at("step").get<int64_t>(), e.at("loss").get<double>());
    return out;
  }

  static void append_sets(std::vector<std::string>& arguments, const std::vector<std::string>& sets) {
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  }

 private:
  TempDir dir_;
};

}  // namespace rowan::test
