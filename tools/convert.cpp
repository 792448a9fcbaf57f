// rowan convert: signs an edited checkpoint anew, or strips it down to its weights.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>

#include "tools/command.h"
#include "tools/guarded.h"
#include "tools/output.h"
#include "train/checkpoint.h"
#include "train/checkpoint_check.h"
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

void write_out(const ConvertOptions& options, const Hdf5Contents& contents, const std::string& output) {
  CheckpointWriter writer;
  for (const auto& array : contents.arrays) {
    if (wanted(array.ref.path, options.weights_only)) writer.add(array.ref);
  }
  CheckpointInfo info = contents.info;
  info.complete = info.complete && !options.weights_only;
  const CheckpointImage image = writer.build(info);
  publish_checkpoint(image, output, IfExists::kRefuse);
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

// Writes to `output` what of the input is wanted, signed.
void convert(const ConvertOptions& options, const std::string& output) {
  const VerifyReport report = verify_checkpoint(options.input);
  if (report.ok()) return write_out(options, contents_of(Checkpoint::open(options.input)), output);
  if (!report.may_be_edited) throw Error(report.problem, ErrorKind::kData);
  std::map<std::string, std::string> before;
  for (const ArrayInfo& a : report.arrays) before[a.path] = a.checksum;
  const auto work = [&] {
    const Hdf5Contents contents = read_hdf5(options.input);
    check_structure(contents, options.input);
    if (!before.empty()) report_changes(contents, before);
    write_out(options, contents, output);
  };
  run_guarded(work, options.input, File::open(options.input).size());
}

// Problems are those of the input, whatever the file was called that showed them, and of its data, whoever found them.
Error about_input(const Error& e, const std::string& result, const ConvertOptions& options) {
  std::string message = e.what();
  for (size_t at; (at = message.find(result)) != std::string::npos;) message.replace(at, result.size(), options.input);
  return Error(message, ErrorKind::kData, e.hint());
}

void run_convert(const ConvertOptions& options) {
  if (file_exists(options.output)) fail_file("write", options.output, EEXIST);
  if (!directory_exists(parent_directory(options.output))) fail_file("write", options.output, ENOENT);
  const std::string signed_file = join_path(parent_directory(options.output), join_text(kTemporaryPrefix, getpid(), "-convert"));
  remove_file(signed_file);
  try {
    convert(options, signed_file);
    Checkpoint result = Checkpoint::open(signed_file);
    check_usable(result);  // what training would refuse is not signed
    rename_without_replacing(signed_file, options.output);
  } catch (const Error& e) {
    remove_file(signed_file);
    throw about_input(e, signed_file, options);
  }
  sync_directory(parent_directory(options.output));
  const Checkpoint checkpoint = Checkpoint::open(options.output);
  print("wrote    {}: step {}, {} bytes, digest {}\n", options.output, checkpoint.integer("/train/step"), checkpoint.file_bytes(),
        checkpoint.state_digest());
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
