#include "train/run_dir.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

#include "train/config.h"

namespace rowan {
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kEnding = ".h5";

std::optional<int64_t> step_of_name(std::string_view name) {
  if (!name.starts_with(kStepPrefix) || !name.ends_with(kEnding)) return std::nullopt;
  name.remove_prefix(kStepPrefix.size());
  name.remove_suffix(kEnding.size());
  int64_t step = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

std::string checkpoints_of(const std::string& directory) {
  return join_path(directory, "checkpoints");
}

bool is_lock(const std::string& name) {
  return name.starts_with(RunLock::kFileName);
}
// What dead processes leave behind: .tmp-<pid>-<number>, -link or -convert.
bool is_temporary(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix)) return false;
  name.remove_prefix(kTemporaryPrefix.size());
  const size_t pid = std::min(name.find_first_not_of("0123456789"), name.size());
  const std::string_view rest = name.substr(pid);
  return pid > 0 && rest.size() > 1 && rest[0] == '-' &&
         (rest == "-link" || rest == "-convert" || rest.find_first_not_of("0123456789", 1) == std::string_view::npos);
}
// What a run consists of, the lock and temporary files aside.
bool is_of_a_run(const std::string& name) {
  return name == "config.toml" || name == "metrics.jsonl" || name == "best.h5" || name == "checkpoints" || name == "capsules" ||
         name == "tokenizer.json";
}
bool is_capsule(const std::string& name) {
  return name.starts_with(kStepPrefix) && name.ends_with(".json");
}

// Nothing when the run went on meanwhile and removed what `steps` names: newer ones are there then.
std::optional<FoundCheckpoint> latest_of(const std::string& directory, const std::vector<int64_t>& steps, bool strict,
                                         FileSystem& files) {
  std::vector<SkippedCheckpoint> skipped;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string path = join_path(checkpoints_of(directory), checkpoint_file_name(*step));
    try {
      Checkpoint checkpoint = Checkpoint::open(path, files);
      check_step(checkpoint, *step);
      return FoundCheckpoint{std::move(checkpoint), std::move(skipped)};
    } catch (const NewerFormat&) {  // not damaged: whoever goes on from an older one would throw this one away
      throw;
    } catch (const FileError& e) {
      if (e.code() == ENOENT && !has_checkpoint(directory, *step, files)) return std::nullopt;
      // A bad sector is damage, and so is a name that leads nowhere. Too many open files, missing rights and the like say nothing
      // about the file: older ones would be no better, and going on with one would throw away what the newest holds.
      if (strict || (e.code() != EIO && e.code() != ENOENT)) throw;
      skipped.push_back({path, e.what()});
    } catch (const Error& e) {
      if (strict) throw;
      skipped.push_back({path, e.what()});
    }
  }
  std::string message = join_text("[run] none of the ", steps.size(), " checkpoints in '", directory, "' can be used: ");
  for (size_t i = 0; i < skipped.size(); ++i) message.append(i ? "; " : "").append(skipped[i].reason);
  throw Error(message, ErrorKind::kData);
}

// Whether a run is there; Error when a new one may not begin in this directory.
bool check_place(const std::string& path, bool overwrite, FileSystem& files) {
  const std::vector<std::string> names = list_directory(path, files);
  const bool run = is_run(path, files);
  const auto other = std::find_if(names.begin(), names.end(), [](const auto& n) { return !is_lock(n) && !is_temporary(n); });
  if (!run && other != names.end()) {
    throw Error("[run] '" + path + "' is not empty and not a run: it has '" + *other + "'", ErrorKind::kUsage,
                "choose another directory with --out");
  }
  if (run && !overwrite) {
    throw Error("[run] '" + path + "' holds a run already", ErrorKind::kUsage,
                "go on with it: `rowan resume " + path + "`; start it anew: --overwrite; or choose another directory with --out");
  }
  return run;
}

}  // namespace

void check_step(const Checkpoint& checkpoint, int64_t step) {
  if (const int64_t inside = checkpoint.integer("/train/step"); inside != step) {
    fail_data("[checkpoint] '", checkpoint.path(), "' holds step ", inside, ", not the one of its name");
  }
}

std::string checkpoint_file_name(int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < 10) digits.insert(0, 10 - digits.size(), '0');
  return std::string(kStepPrefix) + digits + std::string(kEnding);
}

std::vector<int64_t> checkpoint_steps(const std::string& directory, FileSystem& files) {
  std::vector<int64_t> steps;
  const std::string folder = checkpoints_of(directory);
  if (!directory_exists(folder, files)) return steps;
  for (const std::string& name : list_directory(folder, files)) {
    const auto step = step_of_name(name);
    if (step && name == checkpoint_file_name(*step)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

bool has_checkpoint(const std::string& directory, int64_t step, FileSystem& files) {
  const std::vector<int64_t> steps = checkpoint_steps(directory, files);
  return std::binary_search(steps.begin(), steps.end(), step);
}

FoundCheckpoint find_checkpoint(const std::string& path, bool strict, FileSystem& files) {
  if (!directory_exists(path, files)) return {Checkpoint::open(path, files), {}};
  for (std::vector<int64_t> steps; !(steps = checkpoint_steps(path, files)).empty();)
    if (std::optional<FoundCheckpoint> found = latest_of(path, steps, strict, files)) return std::move(*found);
  const bool run = directory_exists(checkpoints_of(path), files);
  throw Error("[run] '" + path + "' " + (run ? "has no checkpoint yet" : "is not the directory of a run: it has no checkpoints"),
              ErrorKind::kData, run ? "start it again with `rowan train CONFIG --out " + path + " --resume`" : "");
}

bool is_run(const std::string& directory, FileSystem& files) {
  if (!directory_exists(checkpoints_of(directory), files)) return false;  // the first thing that a run makes
  if (!checkpoint_steps(directory, files).empty()) return true;
  const std::vector<std::string> names = list_directory(directory, files);
  const auto begun = [](const std::string& n) { return n == "checkpoints" || is_lock(n) || is_temporary(n); };
  if (std::all_of(names.begin(), names.end(), begun)) return list_directory(checkpoints_of(directory), files).empty();
  const std::string config = join_path(directory, "config.toml");
  if (!file_exists(config, files)) return false;
  const File file = File::open(config, files);
  std::string head(std::min<size_t>(kResolvedHead.size(), static_cast<size_t>(file.size())), '\0');
  file.read(0, head.data(), head.size());
  return head == kResolvedHead;
}

// --- writing

RunDir RunDir::create(const std::string& path, bool overwrite, FileSystem& files) {
  make_directories(path, files);
  check_place(path, overwrite, files);  // before anything is written there, the lock included
  RunDir dir(path, RunLock::acquire(path, files), files);
  if (check_place(path, overwrite, files)) dir.remove_run();  // again: only now nobody else can change it
  make_directories(checkpoints_of(path), files);
  dir.remove_temporaries();
  return dir;
}

RunDir RunDir::open(const std::string& path, FileSystem& files) {
  if (!directory_exists(path, files)) {
    throw Error("[run] there is no run in '" + path + "': no such directory", ErrorKind::kData);
  }
  if (!directory_exists(checkpoints_of(path), files)) {
    throw Error("[run] '" + path + "' is not the directory of a run: it has no folder 'checkpoints'", ErrorKind::kData);
  }
  RunDir dir(path, RunLock::acquire(path, files), files);
  dir.remove_temporaries();
  return dir;
}

std::string RunDir::checkpoint_path(int64_t step) const {
  return join_path(checkpoints_of(path_), checkpoint_file_name(step));
}

void RunDir::remove_temporaries() {
  lock_.remove_leftovers();
  for (const std::string& folder : {path_, checkpoints_of(path_), file("capsules")}) {
    if (!directory_exists(folder, *files_)) continue;
    for (const std::string& name : list_directory(folder, *files_)) {
      if (is_temporary(name)) remove_file(join_path(folder, name), *files_);
    }
  }
}

void RunDir::remove_run() {
  // Checkpoints last: as long as one is left, what is left can be resumed.
  if (const std::string capsules = file("capsules"); directory_exists(capsules, *files_))
    for (const std::string& name : list_directory(capsules, *files_))
      if (is_capsule(name)) remove_file(join_path(capsules, name), *files_);
  for (const std::string& name : list_directory(path_, *files_)) {
    if (is_of_a_run(name) && name != "checkpoints" && name != "capsules" && name != "config.toml") remove_file(file(name), *files_);
  }
  for (const int64_t step : checkpoint_steps(path_, *files_)) remove_file(checkpoint_path(step), *files_);
  remove_file(config_path(), *files_);
  sync_directory(path_, *files_);
}

bool RunDir::verifies(int64_t step) {
  if (const auto known = verified_.find(step); known != verified_.end()) return known->second;
  bool good = true;
  try {
    check_step(Checkpoint::open(checkpoint_path(step), *files_), step);
  } catch (const NewerFormat&) {
    throw;
  } catch (const Error&) {
    good = false;
  }
  return verified_[step] = good;
}

void RunDir::save(const CheckpointImage& image) {
  lock_.check();
  const int64_t step = image.step();
  const std::string path = checkpoint_path(step);
  IfExists if_exists = IfExists::kRefuse;
  if (file_exists(path, *files_)) {
    verified_.erase(step);
    if (verifies(step)) {
      const bool same = Checkpoint::open(path, *files_).state_digest() == image.state_digest();
      if (same && replaceable_ != step) {
        sync_directory(checkpoints_of(path_), *files_);  // what may have failed last time
        return;
      }
      if (!same) fail_data("[run] '", path, "' exists and holds another state of step ", step);
    }
    if_exists = IfExists::kReplace;
  }
  verified_.erase(step);
  publish_checkpoint(image, path, if_exists, *files_);
  verified_[step] = true;  // publication has read it back
}

void RunDir::set_best(int64_t step) {
  lock_.check();
  if (!verifies(step)) fail_data("[run] '", checkpoint_path(step), "' does not verify; best.h5 stays as it is");
  publish_link(checkpoint_path(step), best_path(), *files_);
}

void RunDir::discard_after(int64_t step) {
  lock_.check();
  for (const int64_t s : checkpoint_steps(path_, *files_)) {
    if (s <= step) continue;
    remove_file(checkpoint_path(s), *files_);
    verified_.erase(s);
  }
  sync_directory(checkpoints_of(path_), *files_);
}

std::vector<std::string> RunDir::retain(int64_t keep, std::initializer_list<int64_t> also) {
  lock_.check();
  std::vector<std::string> problems;
  const std::vector<int64_t> steps = checkpoint_steps(path_, *files_);
  int64_t good = 0;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      if (good < std::max<int64_t>(keep, 1)) {
        good += verifies(*step);
        continue;
      }
      if (std::find(also.begin(), also.end(), *step) != also.end()) continue;
      remove_file(checkpoint_path(*step), *files_);
      verified_.erase(*step);
    } catch (const Error& e) {
      problems.push_back(e.what());
    }
  }
  return problems;
}

}  // namespace rowan
