// rowan inspect: what a checkpoint holds, whether it is whole, and the one hash of its state.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/command.h"
#include "tools/guarded.h"
#include "tools/output.h"
#include "train/checkpoint.h"
#include "train/checkpoint_hdf5.h"
#include "train/config.h"
#include "train/run_dir.h"
#include "train/walk.h"

namespace rowan::tools {
namespace {

struct InspectOptions {
  std::string path;
  bool verify = false, digest = false, json = false;
  std::optional<std::string> walk;
};

int64_t elements(const ArrayInfo& a) {
  return a.bytes / dtype_bytes(a.dtype);
}

int64_t parameter_count(const Checkpoint& checkpoint) {
  int64_t count = 0;
  for (const ArrayInfo& a : checkpoint.arrays()) count += a.path.starts_with("/model/") ? elements(a) : 0;
  return count;
}

std::string head_summary(const Config& config, int64_t step) {
  if (!config.model.tied) return "untied head";
  const std::string sources = config.train.tied_two_source ? " of two sources" : "";
  const int64_t until = config.train.untie_at;
  if (until == 0) return "tied head" + sources;
  return step < until ? fmt::format("head{} tied until step {}", sources, until) : fmt::format("head untied since step {}", until);
}

std::string model_summary(const Checkpoint& checkpoint) {
  try {
    const Config config = parse_config(checkpoint.text("/config"), "/config");
    const GptConfig& m = config.model;
    return fmt::format("{} layers, {} heads, {} wide, {} long, vocabulary {}; {}, {}, positions {}, {}", m.n_layer, m.n_head,
                       m.d_model, m.max_seq_len, m.vocab_size, m.norm, m.mlp, m.positions,
                       head_summary(config, checkpoint.integer("/train/step")));
  } catch (const Error& e) {
    return fmt::format("not understood: {}", e.what());
  }
}

void print_table(const Checkpoint& checkpoint) {
  const CheckpointInfo& info = checkpoint.info();
  print("{}\n", checkpoint.path());
  print("format   version {}, written by Rowan {} at {}, {}\n", kCheckpointVersion, info.rowan_version, info.created,
        info.complete ? "complete" : "weights only");
  print("step     {}\n", checkpoint.integer("/train/step"));
  print("model    {}\n", model_summary(checkpoint));
  print("size     {} bytes, {} arrays, {} parameters\n", checkpoint.file_bytes(), checkpoint.arrays().size(),
        parameter_count(checkpoint));
  print("digest   {}\n\n", checkpoint.state_digest());
  size_t path_width = 4, shape_width = 5;
  for (const ArrayInfo& a : checkpoint.arrays()) {
    path_width = std::max(path_width, a.path.size());
    shape_width = std::max(shape_width, a.shape_text().size());
  }
  print("{:<{}}  {:<7}  {:<{}}  {:>12}  checksum\n", "path", path_width, "type", "shape", shape_width, "bytes");
  for (const ArrayInfo& a : checkpoint.arrays()) {
    print("{:<{}}  {:<7}  {:<{}}  {:>12}  {}\n", a.path, path_width, dtype_name(a.dtype), a.shape_text(), shape_width, a.bytes,
          a.checksum);
  }
}

void print_json(const FoundCheckpoint& found) {
  const Checkpoint& c = found.checkpoint;
  nlohmann::ordered_json out = {{"path", c.path()},
                                {"format_version", kCheckpointVersion},
                                {"created", c.info().created},
                                {"rowan_version", c.info().rowan_version},
                                {"complete", c.info().complete},
                                {"step", c.integer("/train/step")},
                                {"digest", c.state_digest()},
                                {"file_bytes", c.file_bytes()},
                                {"parameters", parameter_count(c)}};
  out["arrays"] = nlohmann::ordered_json::array();
  for (const ArrayInfo& a : c.arrays()) {
    out["arrays"].push_back(
        {{"path", a.path}, {"dtype", dtype_name(a.dtype)}, {"shape", a.dims}, {"bytes", a.bytes}, {"checksum", a.checksum}});
  }
  out["config"] = c.text("/config");
  out["skipped"] = nlohmann::ordered_json::array();
  for (const SkippedCheckpoint& s : found.skipped) out["skipped"].push_back({{"path", s.path}, {"reason", s.reason}});
  print_object(out, 2);
}

struct FileToVerify {
  std::string path;
  std::optional<int64_t> step;  // that its name promises
};

std::vector<FileToVerify> files_to_verify(const std::string& path) {
  if (!directory_exists(path)) return {{path, std::nullopt}};
  std::vector<FileToVerify> found;
  for (const int64_t step : checkpoint_steps(path)) {
    found.push_back({join_path(join_path(path, "checkpoints"), checkpoint_file_name(step)), step});
  }
  if (const std::string best = join_path(path, "best.h5"); file_exists(best)) found.push_back({best, std::nullopt});
  if (found.empty()) fail_data("[run] '", path, "' has no checkpoints");
  return found;
}

// Every byte, and then whether HDF5 readers see what our loader sees: two files in one would show different weights to different
// programs.
VerifyReport verify(const FileToVerify& file) {
  const std::string& path = file.path;
  VerifyReport report = verify_checkpoint(path);
  if (!report.ok()) return report;
  try {
    const Checkpoint checkpoint = Checkpoint::open(path);
    if (file.step) check_step(checkpoint, *file.step);
    run_guarded([&] { check_hdf5_view(checkpoint); }, path, checkpoint.file_bytes());
  } catch (const FileError& e) {  // no child process to be had, or the file is gone
    report.problem = e.what();
    report.unreadable = true;
  } catch (const Error& e) {
    report.problem = e.what();
  }
  return report;
}

// A run that goes on removes checkpoints that newer ones replace.
bool was_retired(const std::string& directory, const FileToVerify& file) {
  return file.step && !has_checkpoint(directory, *file.step);
}

void print_report(const std::string& path, const VerifyReport& report) {
  print("{}  {}\n", report.ok() ? "ok      " : report.unreadable ? "UNREAD  " : "DAMAGED ", path);
  if (!report.ok()) print("          {}\n", report.problem);
  for (const std::string& array : report.damaged) print("          damaged: {}\n", array);
}

void run_verify(const InspectOptions& options) {
  const std::vector<FileToVerify> files = files_to_verify(options.path);
  size_t damaged = 0, unread = 0;
  std::string problem;
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const FileToVerify& file : files) {
    const std::string& path = file.path;
    const VerifyReport report = verify(file);
    if (report.unreadable && was_retired(options.path, file)) continue;
    (report.unreadable ? unread : damaged) += !report.ok();
    if (report.unreadable) problem = report.problem;
    if (options.json) {
      all.push_back({{"path", path},
                     {"ok", report.ok()},
                     {"read", !report.unreadable},
                     {"problem", report.problem},
                     {"damaged", report.damaged}});
    } else if (files.size() > 1 || !report.unreadable) {  // of one file the error says it all
      print_report(path, report);
    }
  }
  if (options.json) print_object(all, 2);
  const auto of_all = [&](size_t n) { return join_text(n, " of ", files.size(), files.size() == 1 ? " file" : " files"); };
  if (unread == 1 && files.size() == 1) throw Error(problem, ErrorKind::kData);
  if (damaged > 0)
    fail_data("[checkpoint] ", of_all(damaged), " did not verify", unread > 0 ? join_text(", ", unread, " could not be read") : "");
  if (unread > 0) fail_data("[checkpoint] ", of_all(unread), " could not be read: ", problem);
}

void run_inspect(const InspectOptions& options) {
  if (options.verify) return run_verify(options);
  FoundCheckpoint found = find_checkpoint(options.path);
  for (const SkippedCheckpoint& s : found.skipped) warn("skipped: " + s.reason);
  if (options.digest) {
    print("{}\n", found.checkpoint.state_digest());
  } else if (options.walk) {
    print_text(walk_text(load_model(found.checkpoint), *options.walk));
  } else if (options.json) {
    print_json(found);
  } else {
    print_table(found.checkpoint);
  }
}

void add_inspect_command(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect", "What a checkpoint holds, and whether it is whole");
  command->add_option("checkpoint", options->path, "Checkpoint, or the directory of a run")->required()->type_name("CKPT|DIR");
  CLI::Option* verify = command->add_flag("--verify", options->verify,
                                          "Check every byte, and that HDF5 readers see the same; of a run, of all its checkpoints");
  CLI::Option* digest =
      command->add_flag("--digest", options->digest, "Print one hash of the training state, the same for equal states")
          ->excludes(verify);
  CLI::Option* json = command->add_flag("--json", options->json, "Print JSON")->excludes(digest);
  command->add_option("--walk", options->walk, "Show what the embedding step does to this text: ids, table rows, sum, logits")
      ->type_name("TEXT")
      ->excludes(verify)
      ->excludes(digest)
      ->excludes(json);
  command->callback([options] { run_inspect(*options); });
}
ROWAN_COMMAND(add_inspect_command);

}  // namespace
}  // namespace rowan::tools
