// Config text and --set values: the text up to a line "---", then one override a line. A first line "?KEY" asks for the help of
// that key instead, which looks through those of all rules.
#include "layers/parameter_specs.h"
#include "tests/fuzz/fuzz_input.h"
#include "train/config.h"

namespace rowan::fuzz {
namespace {

constexpr int64_t kMostLayers = 64;  // a list of parameters is as long as the model is deep

void use(const std::string& text, const std::vector<std::string>& overrides) {
  const Config config = parse_config(text, "fuzz.toml", overrides);
  const std::string resolved = resolved_toml(config);
  const Config again = parse_config(resolved, "resolved.toml");
  check(config_diff(config, again).empty(), "the resolved text reads back to the same config");
  check(resolved_toml(again).size() > 100, "the resolved text of that has every field");
  check(check_resume_changes(config, again).empty(), "a run goes on with its own config");
  GptConfig model = config.model;
  if (model.n_layer > kMostLayers) return;
  if (model.vocab_size == 0) model.vocab_size = 65;
  for (const ParameterSpec& p : parameter_specs(model)) check(p.shape.size() > 0, "every parameter has elements");
}

}  // namespace
}  // namespace rowan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rowan::fuzz;
  Input input(data, size);
  if (size > 0 && data[0] == '?') {
    accepted([&] { rowan::explain_config(std::string(input.line().substr(1))); });
    return 0;
  }
  std::string text;
  std::vector<std::string> overrides;
  bool after = false;
  while (!input.empty()) {
    const std::string line(input.line());
    if (!after && line == "---")
      after = true;
    else if (after)
      overrides.push_back(line);
    else
      text += line + "\n";
  }
  accepted([&] { use(text, overrides); });
  return 0;
}
