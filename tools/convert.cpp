// rowan convert: signs an edited checkpoint anew, or strips it down to its weights.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "tools/command.h"
#include "tools/guarded.h"
#include "tools/output.h"
#include "train/checkpoint.h"
#include "train/checkpoint_hdf5.h"

namespace rowan::tools {
namespace {

struct ConvertOptions {
  std::string input, output;
  bool weights_only = false;
};

bool wanted(const std::string& path, bool weights_only) {
  return !weights_only || path == "/config" || path == "/tokenizer" || path == "/train/step" || path.starts_with("/model/") ||
         path.starts_with("/tokenizer/");
}

// Says what an edit changed, so that damage is not signed unseen.
void report_changes(const Hdf5Contents& contents, const std::map<std::string, std::string>& before) {
  std::map<std::string, std::string> left = before;
  for (const auto& array : contents.arrays) {
    const auto old = left.find(array.ref.path);
    if (old == left.end()) {
      print("added    {}\n", array.ref.path);
      continue;
    }
    if (old->second != digest_text(digest_of(array.bytes.data(), array.bytes.size()))) print("changed  {}\n", array.ref.path);
    left.erase(old);
  }
  for (const auto& [path, checksum] : left) print("removed  {}\n", path);
}

void check_structure(const Hdf5Contents& contents, const std::string& path) {
  bool model = false, step = false, config = false;
  for (const auto& array : contents.arrays) {
    const ArrayRef& a = array.ref;
    model = model || a.path.starts_with("/model/");
    step = step || (a.path == "/train/step" && a.dtype == DType::kInt64 && array.bytes.size() == 8);
    config = config || (a.path == "/config" && a.dtype == DType::kText);
    if (a.path.starts_with("/model/") && a.dtype != DType::kFloat32 && a.dtype != DType::kFloat64) {
      fail_data("[checkpoint] ", a.path, " in '", path, "' is ", dtype_name(a.dtype), "; parameters are float32");
    }
  }
  if (!model || !step || !config) {
    fail_data("[checkpoint] '", path, "' lacks ",
              !model  ? "parameters under /model"
              : !step ? "/train/step (one int64)"
                      : "/config (text)");
  }
}

void write_out(const ConvertOptions& options, const Hdf5Contents& contents) {
  CheckpointWriter writer;
  for (const auto& array : contents.arrays) {
    if (wanted(array.ref.path, options.weights_only)) writer.add(array.ref);
  }
  CheckpointInfo info = contents.info;
  info.complete = info.complete && !options.weights_only;
  const CheckpointImage image = writer.build(info);
  publish_checkpoint(image, options.output, IfExists::kRefuse);
  print("wrote    {}: step {}, {} bytes, digest {}\n", options.output, image.step(), image.bytes().size(), image.state_digest());
}

// A checkpoint that verifies is read by our own reader; libhdf5 sees only the others.
Hdf5Contents contents_of(const Checkpoint& checkpoint) {
  Hdf5Contents contents{.info = checkpoint.info(), .arrays = {}};
  for (const ArrayInfo& info : checkpoint.arrays()) {
    Hdf5Contents::Array array{.ref = {.path = info.path, .dtype = info.dtype, .dims = info.dims, .data = nullptr}, .bytes = {}};
    array.bytes.resize(static_cast<size_t>(info.bytes));
    checkpoint.read(info, array.bytes.data());
    array.ref.data = array.bytes.data();
    contents.arrays.push_back(std::move(array));
  }
  return contents;
}

void run_convert(const ConvertOptions& options) {
  const VerifyReport report = verify_checkpoint(options.input);
  if (report.ok()) {
    write_out(options, contents_of(Checkpoint::open(options.input)));
    return;
  }
  if (!report.may_be_edited) throw Error(report.problem, ErrorKind::kData);
  std::map<std::string, std::string> before;
  for (const ArrayInfo& a : report.arrays) before[a.path] = a.checksum;
  const auto work = [&] {
    const Hdf5Contents contents = read_hdf5(options.input);
    check_structure(contents, options.input);
    if (!before.empty()) report_changes(contents, before);
    write_out(options, contents);
  };
  run_guarded(work, options.input, File::open(options.input).size());
}

void add_convert_command(CLI::App& app) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App* command = app.add_subcommand("convert", "Sign a checkpoint anew that was edited with h5py, or keep its weights only");
  command->add_option("input", options->input, "The checkpoint; it stays as it is")->required()->type_name("IN");
  command->add_option("output", options->output, "The new checkpoint; must not exist")->required()->type_name("OUT");
  command->add_flag("--weights-only", options->weights_only, "Leave out all that only a resume needs");
  command->callback([options] { run_convert(*options); });
}
ROWAN_COMMAND(add_convert_command);

}  // namespace
}  // namespace rowan::tools
