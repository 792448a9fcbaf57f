#include "train/capsule.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "train/counters.h"
#include "train/file.h"
#include "train/json_text.h"
#include "train/run_dir.h"

namespace rowan {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kLargestCapsule = 64 << 20;
constexpr int kMostOfAStep = 1000;

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  return fmt::format("{}", value);  // "inf" and "-inf" too
}

std::vector<std::string> differences_of(const Capsule& a, const Capsule& b) {
  std::vector<std::string> out;
  if (a.what != b.what) out.push_back(fmt::format("what: {} (capsule: {})", b.what, a.what));
  if (a.loss != b.loss) out.push_back(fmt::format("loss: {} (capsule: {})", b.loss, a.loss));
  if (a.samples != b.samples) out.push_back("the samples are others");
  if (a.norms.size() != b.norms.size()) {
    out.push_back(fmt::format("{} parameters (capsule: {})", b.norms.size(), a.norms.size()));
    return out;
  }
  for (size_t i = 0; i < a.norms.size(); ++i) {
    const Capsule::Norms &x = a.norms[i], &y = b.norms[i];
    if (x != y)
      out.push_back(fmt::format("{}: weight {}, gradient {} (capsule: {}, weight {}, gradient {})", y.name, y.weight, y.gradient,
                                x.name, x.weight, x.gradient));
  }
  return out;
}

// The newest checkpoint that lies before the step on the run's way. The loader's position only ever grows, rewinds included.
std::optional<Checkpoint> checkpoint_before(const std::string& run, const Capsule& capsule) {
  const std::vector<int64_t> steps = checkpoint_steps(run);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (*step > capsule.steps_done) continue;
    try {
      Checkpoint checkpoint = Checkpoint::open(join_path(join_path(run, "checkpoints"), checkpoint_file_name(*step)));
      if (checkpoint.integer("/loader/position") <= capsule.position) return checkpoint;
    } catch (const Error&) {  // damaged: an earlier one will do
    }
  }
  return std::nullopt;
}

void follow(TrainSession& session, const StepResult& result, const std::string& run) {
  const std::string answer = answer_to(session.config(), result);
  bool go_on = answer != "stop";
  if (answer == "skip") go_on = session.count_skip();
  if (answer == "rewind") {
    go_on = session.count_rewind();
    const int64_t to = rewind_step(session.config(), session.steps_done());
    if (go_on) {
      Checkpoint checkpoint = Checkpoint::open(join_path(join_path(run, "checkpoints"), checkpoint_file_name(to)));
      session.rewind_to(checkpoint);
    }
  }
  if (!go_on)
    fail_data("[replay] step ", session.steps_done() + 1, " went wrong before the step of the capsule was reached: ", result.what);
}

Capsule run_to(TrainSession& session, const Capsule& capsule, const std::string& run) {
  while (true) {
    const int64_t done = session.steps_done();
    if (done >= session.config().train.steps)
      fail_data("[replay] the run ends at step ", done, ", before the position of the capsule, ", capsule.position);
    const StepResult result = session.step();
    if (result.position == capsule.position && !result.updated()) return make_capsule(result, done, capsule.action, capsule.config);
    if (result.position >= capsule.position)
      fail_data("[replay] step ", done + 1, " does not go wrong this time; the data, the config or the machine is another one");
    if (!result.updated()) follow(session, result, run);
  }
}

}  // namespace

Capsule make_capsule(const StepResult& result, int64_t steps_done, const std::string& action, const std::string& config) {
  Capsule capsule{.steps_done = steps_done,
                  .position = result.position,
                  .what = result.what,
                  .action = action,
                  .config = config,
                  .loss = number_text(result.loss),
                  .samples = result.samples,
                  .norms = {}};
  for (const ParameterNorms& n : result.norms) capsule.norms.push_back({n.name, number_text(n.weight), number_text(n.gradient)});
  return capsule;
}

std::string capsule_json(const Capsule& capsule) {
  Json out{{"format", "rowan-capsule"},     {"version", 1},
           {"step", capsule.failed_step()}, {"steps_done", capsule.steps_done},
           {"what", capsule.what},          {"action", capsule.action},
           {"loss", capsule.loss},          {"position", capsule.position},
           {"samples", capsule.samples},    {"config", capsule.config}};
  out["parameters"] = Json::array();
  for (const Capsule::Norms& n : capsule.norms)
    out["parameters"].push_back({{"name", n.name}, {"weight_norm", n.weight}, {"gradient_norm", n.gradient}});
  return out.dump(1) + "\n";
}

Capsule read_capsule(const std::string& path) {
  const std::string text = read_text(path, kLargestCapsule);
  try {
    const Json in = parse_json<Json>(text);
    for (const char* count : {"steps_done", "position"})
      if (!in.at(count).is_number_unsigned() || in.at(count).get<uint64_t>() > static_cast<uint64_t>(kLargestCount))
        fail_data("[replay] '", path, "': ", count, " is ", in.at(count).dump(), "; an integer from 0 to ", kLargestCount,
                  " was expected");
    if (in.at("format") != "rowan-capsule" || in.at("version") != 1)
      fail_data("[replay] '", path, "' is not a capsule of version 1");
    Capsule capsule;
    in.at("steps_done").get_to(capsule.steps_done);
    in.at("position").get_to(capsule.position);
    in.at("what").get_to(capsule.what);
    in.at("action").get_to(capsule.action);
    in.at("loss").get_to(capsule.loss);
    in.at("samples").get_to(capsule.samples);
    for (const Json& n : in.at("parameters")) capsule.norms.push_back({n.at("name"), n.at("weight_norm"), n.at("gradient_norm")});
    if (in.contains("config")) in.at("config").get_to(capsule.config);
    return capsule;
  } catch (const Json::exception& e) {
    fail_data("[replay] '", path, "' is not a capsule: ", e.what());
  }
}

std::string write_capsule(const Capsule& capsule, const std::string& run_directory) {
  const std::string folder = join_path(run_directory, "capsules"), text = capsule_json(capsule);
  make_directories(folder);
  for (int number = 1; number <= kMostOfAStep; ++number) {
    const std::string suffix = number == 1 ? "" : fmt::format("-{}", number);
    std::string path = join_path(folder, fmt::format("step-{:010}{}.json", capsule.failed_step(), suffix));
    if (!file_exists(path)) {
      publish_text(path, text, IfExists::kRefuse);
      return path;
    }
    if (read_text(path, kLargestCapsule) == text) return path;
  }
  fail_data("[capsule] step ", capsule.failed_step(), " has ", kMostOfAStep, " capsules already");
}

std::string answer_to(const Config& config, const StepResult& result) {
  return result.spike ? config.train.spike.action : config.train.on_nonfinite;
}

int64_t rewind_step(const Config& config, int64_t steps_done) {
  const int64_t every = config.checkpoint.every;
  return every == 0 ? 0 : steps_done / every * every;
}

Replay replay_capsule(const std::string& path, const Capsule& capsule) {
  const std::string folder = parent_directory(path), run = folder == "." ? ".." : parent_directory(folder);
  std::optional<Checkpoint> checkpoint = checkpoint_before(run, capsule);
  Replay replay;
  // What the run's config says now may have been changed by a resume after the step.
  const auto config_or = [&](const auto& other) { return capsule.config.empty() ? other() : parse_config(capsule.config, path); };
  if (checkpoint) {
    const Config saved = checkpoint_config(*checkpoint), config = config_or([&] { return saved; });
    check_resume_changes(saved, config);
    TrainSession session(config, checkpoint_tokenizer(*checkpoint));
    session.load(*checkpoint);
    replay.start = checkpoint->path();
    replay.again = run_to(session, capsule, run);
  } else {
    TrainSession session(config_or([&] { return load_config(join_path(run, "config.toml")); }));
    replay.start = "the initial weights";
    replay.again = run_to(session, capsule, run);
  }
  replay.differences = differences_of(capsule, replay.again);
  return replay;
}

}  // namespace rowan
