// rowan inspect and rowan convert, as a user runs them, with h5py as the editor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/run_command.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"
#include "tests/train/small_checkpoint.h"
#include "train/run_dir.h"

namespace rowan {
namespace {

namespace fs = std::filesystem;
using test::run_command;
using test::small_image;
using test::SmallState;
using test::TempDir;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Inspect : public testing::Test {
 protected:
  Inspect() { publish_checkpoint(SmallState().image(), path_, IfExists::kRefuse); }

  test::CommandResult rowan(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), ROWAN_BINARY);
    return run_command(arguments);
  }
  void flip(const std::string& path, int64_t at) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(at);
    const char byte = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
  }
  // Runs Python with h5py on a copy of the checkpoint that is open as f.
  std::string edit(const std::string& code) {
    const std::string copy = dir_.file("edited.h5");
    fs::copy_file(path_, copy, fs::copy_options::overwrite_existing);
    const auto r =
        run_command({"/usr/bin/python3", "-c",
                     "import h5py, sys\nimport numpy as np\nf = h5py.File(sys.argv[1], 'r+')\n" + code + "\nf.close()", copy});
    EXPECT_EQ(r.exit_code, 0) << r.err << "(this test needs Debian's python3-h5py)";
    return copy;
  }
  // In place of the small state, which no config describes: a run's own.
  void use_a_runs_checkpoint() {
    const test::SmallRun run;
    TrainSession session(run.config({}));
    session.step();
    publish_checkpoint(make_image(session), path_, IfExists::kReplace);
  }
  TempDir dir_;
  std::string path_ = dir_.file("a b ü.h5");
};

TEST_F(Inspect, shows_what_a_checkpoint_holds) {
  const auto r = rowan({"inspect", path_});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, AllOf(HasSubstr("step     7"), HasSubstr("written by Rowan 1.2.3 at 2025-01-31T00:00:00Z, complete"),
                           HasSubstr("11 arrays, 6 parameters"), HasSubstr("/model/blocks.0.attn.qkv.weight"), HasSubstr("(2,3)"),
                           HasSubstr("digest   " + SmallState().image().state_digest())));
}

TEST_F(Inspect, prints_the_digest_alone) {
  const auto r = rowan({"inspect", "--digest", path_});
  EXPECT_EQ(r.out, SmallState().image().state_digest() + "\n");
  EXPECT_THAT(r.err, IsEmpty());
}

TEST_F(Inspect, prints_json) {
  const auto r = rowan({"inspect", "--json", path_});
  const auto json = nlohmann::json::parse(r.out);
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["config"], SmallState().config);
  EXPECT_EQ(json["complete"], true);
  ASSERT_EQ(json["arrays"].size(), 11u);
  EXPECT_EQ(json["arrays"][2]["path"], "/model/blocks.0.attn.qkv.weight");
  EXPECT_EQ(json["arrays"][2]["shape"], (std::vector<int64_t>{2, 3}));
}

TEST_F(Inspect, verification_names_what_is_damaged) {
  EXPECT_EQ(rowan({"inspect", "--verify", path_}).exit_code, 0);
  flip(path_, Checkpoint::open(path_).find("/loader/steps")->offset);
  const auto r = rowan({"inspect", "--verify", path_});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.out, AllOf(HasSubstr("DAMAGED"), HasSubstr("damaged: /loader/steps")));
  EXPECT_THAT(r.err, HasSubstr("1 of 1 file did not verify"));
  const auto plain = rowan({"inspect", path_});
  EXPECT_EQ(plain.exit_code, 1);
  EXPECT_THAT(plain.err, AllOf(HasSubstr("rowan: error:"), HasSubstr("is damaged or was edited"), HasSubstr("hint:")));
}

TEST_F(Inspect, verifying_a_run_finds_the_checkpoint_that_resume_would_leave_out_for_its_name) {
  const std::string run = dir_.file("run");
  RunDir writer = RunDir::create(run, false);
  std::ofstream(writer.config_path()) << "";
  writer.save(small_image(1));
  std::filesystem::copy_file(writer.checkpoint_path(1), writer.checkpoint_path(3));
  const auto r = rowan({"inspect", "--verify", run});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.out, AllOf(HasSubstr("DAMAGED"), HasSubstr("holds step 1, not the one of its name")));
}

TEST_F(Inspect, of_a_run_takes_the_newest_good_checkpoint_and_verifies_all) {
  const std::string run = dir_.file("run");
  RunDir writer = RunDir::create(run, false);
  std::ofstream(writer.config_path()) << "";
  for (const int64_t step : {1, 2}) writer.save(small_image(step));
  writer.set_best(1);
  EXPECT_EQ(rowan({"inspect", "--digest", run}).out, small_image(2).state_digest() + "\n");
  EXPECT_EQ(rowan({"inspect", "--verify", run}).exit_code, 0);
  flip(writer.checkpoint_path(2), 900);
  const auto r = rowan({"inspect", "--digest", run});
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_EQ(r.out, small_image(1).state_digest() + "\n");
  EXPECT_THAT(r.err, AllOf(HasSubstr("warning: skipped"), HasSubstr("step-0000000002.h5")));
  const auto verify = rowan({"inspect", "--verify", "--json", run});
  EXPECT_EQ(verify.exit_code, 1);
  const auto json = nlohmann::json::parse(verify.out);
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0]["ok"], true);
  EXPECT_EQ(json[1]["ok"], false);
  EXPECT_EQ(json[2]["ok"], true);
}

TEST_F(Inspect, verification_says_of_a_file_that_can_not_be_read_why) {
  for (const auto& [path, reason] : {std::pair{dir_.file("none.h5"), "ENOENT"}, {std::string("/dev/null"), "not a regular file"}}) {
    const auto r = rowan({"inspect", "--verify", path});
    EXPECT_EQ(r.exit_code, 1);
    EXPECT_THAT(r.err, AllOf(HasSubstr("rowan: error: [file]"), HasSubstr(path), HasSubstr(reason)));
    EXPECT_THAT(r.out, IsEmpty());
    const auto json = nlohmann::json::parse(rowan({"inspect", "--verify", "--json", path}).out);
    EXPECT_EQ(json.at(0).at("ok"), false);
    EXPECT_EQ(json.at(0).at("read"), false);
  }
  const std::string run = dir_.file("run");
  RunDir writer = RunDir::create(run, false);
  writer.save(small_image(1));
  writer.save(small_image(2));
  fs::create_directory(writer.checkpoint_path(3));
  const auto unread = rowan({"inspect", "--verify", run});
  EXPECT_EQ(unread.exit_code, 1);
  EXPECT_THAT(unread.out, AllOf(HasSubstr("UNREAD    " + writer.checkpoint_path(3)), Not(HasSubstr("DAMAGED"))));
  EXPECT_THAT(unread.err, AllOf(HasSubstr("1 of 3 files could not be read"), HasSubstr("is a directory")));
  flip(writer.checkpoint_path(2), 900);
  const auto both = rowan({"inspect", "--verify", run});
  EXPECT_THAT(both.out, HasSubstr("DAMAGED   " + writer.checkpoint_path(2)));
  EXPECT_THAT(both.err, HasSubstr("1 of 3 files did not verify, 1 could not be read"));
}

TEST_F(Inspect, shows_control_characters_of_names_and_of_a_checkpoint_as_escapes) {
  const std::string path = dir_.file("a\x1b[2J\nb\u009bc.h5");
  SmallState state;
  state.config = "name = \"x\"\nmo\u001bdel = 1\n";
  CheckpointWriter writer;
  state.write(writer);
  const CheckpointImage image = writer.build({.created = "now\x1b[31m", .rowan_version = "1\x7f", .complete = true});
  publish_checkpoint(image, path, IfExists::kRefuse);
  for (const std::vector<std::string>& command : {std::vector<std::string>{"inspect", path},
                                                  {"inspect", "--verify", path},
                                                  {"inspect", "--json", path},
                                                  {"convert", "--weights-only", path, path + ".out"},
                                                  {"eval", path},
                                                  {"sample", path}}) {
    const auto r = rowan(command);
    for (const char* raw : {"\x1b", "\x7f", "\u009b", "\nb"})
      EXPECT_THAT(r.out + r.err, Not(HasSubstr(raw))) << command[0] << command[1];
    EXPECT_THAT(r.out + r.err, testing::AnyOf(HasSubstr("u001b"), HasSubstr("u001B"))) << command[0];
  }
  EXPECT_THAT(rowan({"inspect", path}).out, AllOf(HasSubstr(R"(a\u001B[2J\nb\u009Bc.h5)"), HasSubstr(R"(at now\u001B[31m)")));
}

TEST_F(Inspect, says_what_is_wrong_with_a_path) {
  EXPECT_THAT(rowan({"inspect", dir_.file("none.h5")}).err, HasSubstr("ENOENT"));
  EXPECT_THAT(rowan({"inspect", dir_.path().string()}).err, HasSubstr("not the directory of a run"));
  EXPECT_EQ(rowan({"inspect", "--verify", dir_.file("none.h5")}).exit_code, 1);
  EXPECT_EQ(rowan({"inspect"}).exit_code, 2);
}

TEST_F(Inspect, memory_stays_small_on_sparse_giants) {
  const std::string path = dir_.file("giant.h5");
  std::ofstream(path) << "\x89ROWAN\r\n";
  fs::resize_file(path, uintmax_t{1} << 40);
  const auto r = run_command({"/bin/sh", "-c", "ulimit -v 2000000; exec \"$0\" inspect --verify \"$1\"", ROWAN_BINARY, path});
#ifndef ROWAN_SANITIZED
  EXPECT_THAT(r.out, HasSubstr("header of"));
#endif
  EXPECT_NE(r.exit_code, 0);
}

// --- convert

TEST_F(Inspect, convert_signs_what_h5py_edited_and_says_what_changed) {
  use_a_runs_checkpoint();
  const std::string created = Checkpoint::open(path_).info().created, config = Checkpoint::open(path_).text("/config");
  const std::string edited = edit(
      "w = f['model/blocks.0.attn.qkv.weight']\nw[0, 1] = 42\nc = bytes(f['config'][()])\ndel f['config']\n"
      "f['config'] = np.bytes_(c + '# längere Konfiguration'.encode())\ndel f['train/machine']");
  EXPECT_EQ(rowan({"inspect", edited}).exit_code, 1);
  const std::string out = dir_.file("out.h5");
  const auto r = rowan({"convert", edited, out});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, AllOf(HasSubstr("changed  /model/blocks.0.attn.qkv.weight"), HasSubstr("changed  /config"),
                           HasSubstr("removed  /train/machine"), Not(HasSubstr("/tokenizer"))));
  Checkpoint c = Checkpoint::open(out);
  Tensor w;
  c.take("/model/blocks.0.attn.qkv.weight", w);
  EXPECT_EQ(w.data()[1], 42);
  EXPECT_EQ(c.text("/config"), config + "# längere Konfiguration");
  EXPECT_EQ(c.info().created, created);
  const auto again = rowan({"convert", edited, out});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, AllOf(HasSubstr("EEXIST"), HasSubstr("hint: nothing is overwritten")));
}

// Whatever a run keeps, an unedited checkpoint converts to the same state.
TEST_F(Inspect, convert_takes_every_layout_of_the_state) {
  const std::vector<std::vector<std::string>> layouts = {
      {"model.tied=true", "train.tied_two_source=true"},
      {"model.tied=true", "train.untie_at=1"},
      {"model.tied=true", "train.untie_at=5"},
      {"optim.group.0.params=embed.*", "optim.group.0.untouched=exact", "optim.group.0.catch_up=closed"},
      {"train.loss=sampled", "train.sampled.negatives=8", "optim.rule=adam8bit"},
      {"optim.group.0.params=blocks.*.mlp.*.weight", "optim.group.0.rule=muon"},
      {"train.spike.window=3", "optim.rule=adafactor"},
  };
  const std::string out = dir_.file("out.h5");
  for (const auto& sets : layouts) {
    const test::SmallRun run;
    TrainSession session(run.config(sets));
    for (int i = 0; i < 2; ++i) session.step();
    publish_checkpoint(make_image(session), path_, IfExists::kReplace);
    fs::remove(out);
    const auto r = rowan({"convert", path_, out});
    ASSERT_EQ(r.exit_code, 0) << sets[0] << r.err;
    ASSERT_EQ(Checkpoint::open(out).state_digest(), Checkpoint::open(path_).state_digest()) << sets[0];
  }
}

// What a resume would refuse, or could only go wrong with, is not signed.
TEST_F(Inspect, convert_signs_nothing_that_training_would_not_take) {
  use_a_runs_checkpoint();
  const std::pair<const char*, const char*> cases[] = {
      {"del f['model/final_norm.weight']", "/model/final_norm.weight"},
      {"f['model/foo'] = f['model/final_norm.weight'][()]", "/model/foo"},
      {"w = f['model/embed.tokens.weight'][()]\ndel f['model/embed.tokens.weight']\nf['model/embed.tokens.weight'] = w[1:]",
       "/model/embed.tokens.weight"},
      {"f['model/final_norm.weight'][0] = np.nan", "not finite"},
      {"f['optim/final_norm.weight/exp_avg'][0] = np.inf", "not finite"},
      {"del f['config']\nf['config'] = np.bytes_(b'model = 5')", "model"},
      {"del f['tokenizer/json']", "/tokenizer/json"},
      {"del f['optim']", "/optim/"},
      {"del f['loader']", "/loader/position"},
      {"del f['rng']", "/rng/seed"},
      {"f['train/note'] = np.int64(1)", "/train/note"},
      {"f['train/step'][()] = -1", "/train/step"},
      {"f['train/tokens'][()] = -1", "/train/tokens"},
      {"f['train/best_loss'][()] = np.nan", "/train/best_loss"},
      {"f['loader/position'][()] = 2**62", "/loader/position"},
  };
  for (const auto& [code, message] : cases) {
    const auto r = rowan({"convert", edit(code), dir_.file("out.h5")});
    EXPECT_EQ(r.exit_code, 1) << code;
    EXPECT_THAT(r.err, AllOf(HasSubstr(message), Not(HasSubstr(".tmp-")))) << code;
  }
  for (const auto& entry : fs::directory_iterator(dir_.path()))
    EXPECT_TRUE(entry.path().filename() == "edited.h5" || entry.path() == path_) << entry.path();
}

TEST_F(Inspect, convert_refuses_tricks) {
  use_a_runs_checkpoint();
  const std::pair<const char*, const char*> cases[] = {
      {"f['model/x'] = h5py.SoftLink('/config')", "soft or external link"},
      {"f['model/x'] = h5py.ExternalLink('/etc/passwd', '/x')", "soft or external link"},
      {"f.create_dataset('model/x', data=np.ones(100, 'f4'), compression='gzip')", "contiguous storage"},
      {"f.create_dataset('model/x', (4,), 'f4', external=[('/etc/passwd', 0, 16)])", "another file"},
      {"f['model/x'] = np.ones(3, '>f4')", "another type"},
      {"f['model/x'] = np.ones(3, 'i4')", "parameters are float32"},
      {"f['train/x'] = 'text of any length'", "numpy.bytes_"},
      {"f['other/x'] = np.ones(3, 'f4')", "does not belong"},
      {"del f['train/step']", "lacks /train/step"},
      {"del f['model']", "lacks parameters"},
      {"f.attrs['version'] = 2", "format version 2"},
      {"f.attrs['format'] = np.bytes_('other')", "no attribute format"},
  };
  for (const auto& [code, message] : cases) {
    const auto r = rowan({"convert", edit(code), dir_.file("out.h5")});
    EXPECT_EQ(r.exit_code, 1) << code;
    EXPECT_THAT(r.err, HasSubstr(message)) << code;
    EXPECT_FALSE(fs::exists(dir_.file("out.h5"))) << code;
  }
}

TEST_F(Inspect, convert_keeps_weights_only) {
  use_a_runs_checkpoint();
  const std::string out = dir_.file("weights.h5");
  ASSERT_EQ(rowan({"convert", "--weights-only", path_, out}).exit_code, 0);
  const Checkpoint c = Checkpoint::open(out);
  EXPECT_FALSE(c.info().complete);
  const Checkpoint whole = Checkpoint::open(path_);
  for (const ArrayInfo& a : whole.arrays()) {
    const bool kept =
        a.path.starts_with("/model/") || a.path == "/config" || a.path == "/tokenizer/json" || a.path == "/train/step";
    EXPECT_EQ(c.contains(a.path), kept) << a.path;
  }
  EXPECT_THAT(rowan({"inspect", out}).out, HasSubstr("weights only"));
}

TEST_F(Inspect, convert_survives_files_on_which_libhdf5_may_crash) {
  std::ifstream in(path_, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  const std::string good = text.str();
  // Every 97th byte of the HDF5 metadata at the start, several values: an error or a new file, never a crash of the command.
  for (size_t at = 512; at < 2600; at += 97) {
    for (const char value : {'\xff', '\x7f', '\0'}) {
      std::string bad = good;
      bad[at] = value;
      const std::string path = dir_.file("bad.h5"), out = dir_.file("out.h5");
      std::ofstream(path, std::ios::binary) << bad;
      const auto r = rowan({"convert", path, out});
      EXPECT_TRUE(r.exit_code == 0 || r.exit_code == 1) << at << ' ' << r.exit_code << r.err;
      EXPECT_EQ(fs::exists(out), r.exit_code == 0);
      fs::remove(out);
    }
  }
  EXPECT_EQ(rowan({"convert", "/etc/passwd", dir_.file("out.h5")}).exit_code, 1);
}

}  // namespace
}  // namespace rowan
