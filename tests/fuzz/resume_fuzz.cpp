// Going on from a signed checkpoint that somebody changed: the state of a real run, some arrays of which get other values, other
// shapes or types, or go. What loads must also train a step and be saved again.
#include "core/parallel.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/signed_file.h"
#include "train/session.h"

namespace rowan::fuzz {
namespace {

constexpr char kConfig[] = R"([model]
d_model = 4
n_layer = 1
n_head = 2
max_seq_len = 11
tied = false
[data]
train = "builtin:sort"
seq_len = 11
batch_size = 2
[train]
threads = 1
[optim]
lr = 1e-3
[checkpoint]
every = 1
)";

// Rules with state of every kind: moments, bytes, rows, counters of rows that lag behind.
const std::vector<std::vector<std::string>> kRules = {
    {"optim.rule=adamw", "train.spike.window=4"},
    {"optim.rule=adamw", "optim.group.0.params=embed.*", "optim.group.0.rule=adamw", "optim.group.0.untouched=exact"},
    {"optim.rule=adam8bit", "optim.group.0.params=embed.*", "optim.group.0.rule=adamw", "optim.group.0.untouched=exact",
     "optim.group.0.catch_up=closed"},
    {"optim.rule=adafactor", "optim.group.0.params=embed.*", "optim.group.0.rule=dgl_sparse_adam"},
    {"optim.rule=sm3", "optim.group.0.params=embed.*", "optim.group.0.rule=smart_decay_adam"},
};

LooseState state_after_two_steps(const std::vector<std::string>& sets) {
  TrainSession session(parse_config(kConfig, "fuzz.toml", sets));
  session.step();
  session.step();
  const CheckpointImage image = make_image(session);
  const MemoryFile file;
  file.write(image.bytes());
  return loose_state(Checkpoint::open(file.path()));
}

const LooseState& base_state(size_t rule) {
  static const std::vector<LooseState> all = [] {
    std::vector<LooseState> states;
    for (const auto& sets : kRules) states.push_back(state_after_two_steps(sets));
    return states;
  }();
  return all[rule];
}

void resize_to_dims(LooseArray& array) {
  size_t bytes = static_cast<size_t>(dtype_bytes(array.dtype));
  for (const int64_t d : array.dims) bytes *= static_cast<size_t>(d);
  array.bytes.resize(bytes);
}

template <class T>
void put_element(LooseArray& array, size_t element, T value) {
  if ((element + 1) * sizeof value <= array.bytes.size())
    std::memcpy(array.bytes.data() + element * sizeof value, &value, sizeof value);
}

void edit(LooseArray& array, Input& input) {
  const size_t element = input.below(std::max<size_t>(array.bytes.size() / 4, 1));
  switch (input.number<uint8_t>() % 7) {
    case 0:
      return put_element(array, element, input.number<uint8_t>());
    case 1:
      return put_element(array, element, input.number<int32_t>());
    case 2:
      return put_element(array, element, input.number<int64_t>());
    case 3:  // a number of few bits at the front, as counters are
      return put_element<int64_t>(array, 0, int64_t{1} << input.below(64));
    case 4:
      array.dims = {static_cast<int64_t>(input.below(64)), static_cast<int64_t>(input.below(8))};
      array.dims.resize(input.below(3));
      return resize_to_dims(array);
    case 5:
      array.dtype = static_cast<DType>(input.below(6));
      if (array.dtype == DType::kText) array.dims = {static_cast<int64_t>(input.below(64))};
      return resize_to_dims(array);
    default: {  // some of a text
      const Bytes piece = input.take(input.below(40));
      const size_t at = std::min(element, array.bytes.size());
      std::copy_n(piece.begin(), std::min(piece.size(), array.bytes.size() - at),
                  array.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
}

// A run on a file, or on another number of threads, is not what is looked at here.
bool stays_in_memory(const Config& config) {
  return config.data.train == std::vector<std::string>{"builtin:sort"} && config.data.val.empty() &&
         (config.data.tokenizer == "char" || config.data.tokenizer == "byte") && config.train.grad_accum <= 4 &&
         config.data.batch_size <= 16;
}

void use(const std::string& path) {
  Checkpoint checkpoint = Checkpoint::open(path);
  accepted([&] { load_model(checkpoint); });
  Checkpoint again = Checkpoint::open(path);
  const Config config = checkpoint_config(again);
  if (!stays_in_memory(config)) return;
  TrainSession session(config, checkpoint_tokenizer(again));
  session.load(again);
  session.step();
  if (session.find_non_finite().empty()) make_image(session);
}

}  // namespace
}  // namespace rowan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rowan::fuzz;
  static const MemoryFile file;
  static const rowan::Threads one_thread(1);
  Input input(data, size);
  LooseState state = base_state(input.below(kRules.size()));
  while (!input.empty() && !state.empty()) {
    const auto array = std::next(state.begin(), static_cast<std::ptrdiff_t>(input.below(state.size())));
    if (input.number<uint8_t>() % 32 == 0)
      state.erase(array);
    else
      edit(array->second, input);
  }
  file.write(signed_file(state));
  accepted([&] { use(file.path()); });
  return 0;
}
