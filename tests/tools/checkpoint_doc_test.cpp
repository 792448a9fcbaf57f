// docs/CHECKPOINT.md against what is really in a file, and its examples as a reader would run them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "tests/support/command_run.h"
#include "train/session.h"

namespace rowan::test {
namespace {

std::string document() {
  return read_all(std::string(ROWAN_SOURCE_DIR) + "/docs/CHECKPOINT.md");
}

// The path as the document has it, with its variable parts named.
std::string documented(const std::string& path, const std::set<std::string>& parameters) {
  if (path.starts_with("/model/")) return "/model/<parameter>";
  if (!path.starts_with("/optim/")) return path;
  const size_t slash = path.rfind('/');
  const std::string owner = path.substr(7, slash - 7), name = path.substr(slash + 1);
  if (owner.starts_with("group-")) return "/optim/group-<n>/" + name;
  EXPECT_TRUE(parameters.contains(owner)) << path;
  return name == "step" ? "/optim/<parameter>/step" : name;
}

void collect(const std::vector<std::string>& sets, const SmallRun& run, std::set<std::string>& names) {
  TrainSession session(run.config(sets));
  session.step();
  session.step();
  const std::string path = run.path("doc.h5");
  publish_checkpoint(make_image(session), path, IfExists::kReplace);
  std::set<std::string> parameters;
  for (const NamedParameter& p : named_parameters(session.model())) parameters.insert(p.name);
  const Checkpoint checkpoint = Checkpoint::open(path);
  for (const ArrayInfo& a : checkpoint.arrays()) names.insert(documented(a.path, parameters));
}

TEST(CheckpointDocument, names_every_dataset_that_a_file_may_hold) {
  const SmallRun run;
  std::set<std::string> names;
  for (const std::string& rule : optimizer_rules())
    collect({rule == "muon" ? "optim.group.0.params=*.qkv.weight" : "optim.group.0.params=embed.*", "optim.group.0.rule=" + rule,
             "train.spike.window=3"},
            run, names);
  collect({"optim.group.0.params=embed.*", "optim.group.0.rule=adamw", "optim.group.0.untouched=exact"}, run, names);
  collect({"optim.group.0.params=embed.*", "optim.group.0.rule=adamw", "optim.group.0.untouched=exact",
           "optim.group.0.catch_up=closed"},
          run, names);
  collect({"optim.rule=rmsprop", "optim.momentum=0.9"}, run, names);
  EXPECT_GT(names.size(), 35u);
  const std::string text = document();
  for (const std::string& name : names) EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
}

TEST(CheckpointDocument, names_every_dataset_and_attribute_that_h5py_finds) {
  const CommandRun run;
  ASSERT_EQ(run.train("a", {"train.steps=2"}).exit_code, 0);
  const CommandResult r = run_command({"/usr/bin/python3", "-c", R"(import h5py, sys
with h5py.File(sys.argv[1]) as f:
    found = list(f.attrs)
    f.visititems(lambda name, item: found.extend(list(item.attrs) + (["/" + name] if isinstance(item, h5py.Dataset) else [])))
    print("\n".join(found)))",
                                       run.path("a/checkpoints/step-0000000002.h5")});
  ASSERT_EQ(r.exit_code, 0) << r.err << "(Debian's python3-h5py)";
  const std::string text = document();
  std::istringstream lines(r.out);
  size_t count = 0;
  for (std::string name; std::getline(lines, name); ++count) {
    if (name.starts_with("/model/") || name.starts_with("/optim/")) continue;  // the test above
    EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
  }
  EXPECT_GT(count, 60u);
}

struct Example {
  std::string language, code;
};

std::vector<Example> examples(const std::string& text) {
  std::vector<Example> all;
  std::istringstream lines(text);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) all.push_back({line.substr(3), ""});
    } else if (inside) {
      all.back().code += line + "\n";
    }
  }
  return all;
}

// In one directory, in the order of the document: the files that they name are there, the commands are in the PATH.
TEST(CheckpointDocument, its_examples_run) {
  const CommandRun run;
  const std::filesystem::path here = run.path("here");
  ASSERT_EQ(run.train("here/runs/demo", {"train.steps=100", "train.log_every=100"}).exit_code, 0);
  const std::string checkpoint = "step-0000000100.h5";
  std::filesystem::copy_file(here / "runs/demo/checkpoints" / checkpoint, here / checkpoint);
  std::filesystem::copy_file(here / checkpoint, here / "edited.h5");
  std::filesystem::copy_file(here / "runs/demo/config.toml", here / "config.toml");
  const std::string path = std::filesystem::path(ROWAN_BINARY).parent_path().string() + ":" + std::getenv("PATH");
  int python = 0, shell = 0;
  for (const Example& e : examples(document())) {
    CommandOptions options{.directory = here.string(), .environment = {{"PATH", path}}, .limit_seconds = 300};
    CommandResult r;
    if (e.language == "python") {
      r = run_command({"/usr/bin/python3", "-c", e.code}, options);
      ++python;
    } else if (e.language == "sh") {
      r = run_command({"/bin/sh", "-e", "-c", e.code}, options);
      ++shell;
    } else {
      continue;
    }
    EXPECT_EQ(r.exit_code, 0) << e.code << r.out << r.err;
  }
  EXPECT_GE(python, 2);
  EXPECT_GE(shell, 2);
  // What they are meant to do.
  Checkpoint made = Checkpoint::open((here / "new.h5").string());
  Tensor table;
  made.take("/model/embed.tokens.weight", table);
  const Shape shape = table.shape();
  EXPECT_EQ(std::count(table.data() + 3 * shape.back(), table.data() + 4 * shape.back(), Real(0)), shape.back());
  EXPECT_FALSE(Checkpoint::open((here / "weights.h5").string()).info().complete);
}

}  // namespace
}  // namespace rowan::test
