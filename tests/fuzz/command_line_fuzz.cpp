// Values on the command line, through the program's own main(): one argument a line. The first byte chooses a command, whose file
// is a small run that exists or a path that does not, so that nothing is ever written.
#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <streambuf>
#include <vector>

#include "core/parallel.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/temp_dir.h"
#include "train/session.h"

int rowan_main(int argc, char** argv);  // tools/rowan.cpp

namespace rowan::fuzz {
namespace {

constexpr char kConfig[] = R"([model]
d_model = 4
n_layer = 1
n_head = 2
max_seq_len = 11
[data]
train = "builtin:sort"
seq_len = 11
batch_size = 2
[train]
threads = 1
)";

class Run {
 public:
  Run() {
    std::ofstream(config()) << kConfig;
    TrainSession session(load_config(config()));
    session.step();
    publish_checkpoint(make_image(session), checkpoint(), IfExists::kRefuse);
  }
  std::string config() const { return dir_.file("small.toml"); }
  std::string checkpoint() const { return dir_.file("small.h5"); }
  std::string nothing() const { return dir_.file("nothing"); }
  bool unchanged() const {
    const std::filesystem::directory_iterator files(dir_.path());
    return std::distance(begin(files), end(files)) == 2;
  }

 private:
  test::TempDir dir_;
};

std::vector<std::string> command(size_t kind, const Run& run) {
  const std::vector<std::vector<std::string>> commands = {
      {},
      {"config", "explain"},
      {"config", "resolve", run.config()},
      {"config", "diff", run.config()},
      {"train", run.nothing()},
      {"resume", run.nothing()},
      {"sample", run.checkpoint(), "--tokens", "2"},
      {"eval", run.checkpoint()},
      {"inspect", run.checkpoint()},
      {"convert", run.nothing()},
      {"plan", run.nothing()},
      {"replay", run.nothing()},
  };
  return commands[kind % commands.size()];
}

// Commands that were not chosen above take paths to write to, or measure for seconds.
bool harmless(const std::string& argument, bool first) {
  static const std::vector<std::string> kCommands = {"train", "resume", "convert", "prepare", "bench", "plan", "replay", "eval"};
  return !first || std::none_of(kCommands.begin(), kCommands.end(), [&](const std::string& c) { return argument == c; });
}

// Takes everything, as /dev/null. (No buffer at all would be a stream that is broken, which the program reports.)
class NullBuffer final : public std::streambuf {
  int overflow(int c) override { return traits_type::not_eof(c); }
  std::streamsize xsputn(const char*, std::streamsize n) override { return n; }
};

// What main() prints to stderr, in memory; stdout is thrown away.
class CapturedStreams {
 public:
  CapturedStreams() : old_out_(stdout), old_err_(stderr), old_buffer_(std::cout.rdbuf(&nowhere_)) {
    stdout = std::fopen("/dev/null", "w");
    stderr = open_memstream(&text_, &size_);
  }
  ~CapturedStreams() {
    std::fclose(stdout);
    std::fclose(stderr);
    stdout = old_out_;
    stderr = old_err_;
    std::cout.rdbuf(old_buffer_);
    std::free(text_);
  }
  CapturedStreams(const CapturedStreams&) = delete;
  CapturedStreams& operator=(const CapturedStreams&) = delete;
  std::string error() {
    std::fflush(stderr);
    return {text_, size_};
  }

 private:
  FILE *old_out_, *old_err_;
  NullBuffer nowhere_;
  std::streambuf* old_buffer_;
  char* text_ = nullptr;
  size_t size_ = 0;
};

void run_main(std::vector<std::string> words) {
  words.insert(words.begin(), "rowan");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int code = 0;
  std::string error;
  {
    CapturedStreams streams;
    code = rowan_main(static_cast<int>(words.size()), argv.data());
    error = streams.error();
  }
  check(code >= 0 && code <= 3, "the exit code is one of the documented ones");
  const size_t said = error.find("rowan: error: ");
  check((code != 0) == (said != std::string::npos), "what fails says so, and nothing else does");
  check(code == 0 || std::count(error.begin() + static_cast<std::ptrdiff_t>(said), error.end(), '\n') <= 2,
        "an error is one line, and a hint another");
}

}  // namespace
}  // namespace rowan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rowan::fuzz;
  static const rowan::Threads one_thread(1);
  static const Run run;
  Input input(data, size);
  const size_t kind = input.number<uint8_t>();
  std::vector<std::string> words = command(kind, run);
  const bool none_chosen = words.empty();
  while (!input.empty()) {
    const std::string word(input.line().substr(0, 1000));
    if (word.find('\0') != std::string::npos || !harmless(word, none_chosen)) return 0;
    words.push_back(word);
  }
  run_main(words);
  check(run.unchanged(), "nothing was written");
  return 0;
}
