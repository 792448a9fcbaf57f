// What a config means: values, defaults, aliases, overrides, provenance, groups, and that a resolved copy is the same config.
#include "train/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "train/config_fields.h"

namespace rowan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::map<std::string, std::string> values(const Config& config) {
  std::map<std::string, std::string> out;
  for (const ConfigField& field : config_fields(config)) out[field.key] = field.value;
  return out;
}

std::vector<std::filesystem::path> shipped_configs() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(ROWAN_SOURCE_DIR "/configs")) {
    if (entry.path().extension() == ".toml") paths.push_back(entry.path());
  }
  return paths;
}

TEST(Config, empty_text_gives_the_defaults) {
  const Config config = parse_config("", "runs/my first.toml");
  EXPECT_EQ(config.name, "my first");
  EXPECT_EQ(config.model.d_model, GptConfig{}.d_model);
  EXPECT_EQ(config.train.clip_norm, TrainConfig{}.clip_norm);
  EXPECT_EQ(config.optim.rule, "adamw");
  ASSERT_NE(config.optim.optimizer, nullptr);
  for (const auto& [key, origin] : config.origin) EXPECT_EQ(origin, "default") << key;
}

TEST(Config, reads_every_type_and_table) {
  const Config config = parse_config(R"(
name = "run 7"
[model]
d_model = 96
bias = false
norm_eps = 1          # an integer is fine for a real
rope = {theta = 5e5, style = "interleaved"}
[data]
train = ["a.txt", 'b "quoted".txt']
val = ""
[train]
steps = 1_000
sample_prompt = "tab\t\u00e9"
schedule.kind = "wsd"
[optim]
rule = "sgd"
lr = 0.25
)",
                                     "x.toml");
  EXPECT_EQ(config.name, "run 7");
  EXPECT_EQ(config.model.d_model, 96);
  EXPECT_FALSE(config.model.bias);
  EXPECT_EQ(config.model.norm_eps, 1.0);
  EXPECT_EQ(config.model.rope.theta, 500000.0);
  EXPECT_EQ(config.model.rope.style, "interleaved");
  EXPECT_THAT(config.data.train, ElementsAre("a.txt", "b \"quoted\".txt"));
  EXPECT_THAT(config.data.val, IsEmpty());
  EXPECT_EQ(config.train.steps, 1000);
  EXPECT_EQ(config.train.sample_prompt, "tab\t\u00e9");
  EXPECT_EQ(config.train.schedule.kind, "wsd");
  EXPECT_EQ(config.optim.rule, "sgd");
  EXPECT_EQ(config.optim.optimizer->lr(), 0.25);
}

TEST(Config, one_path_is_a_list_of_one) {
  EXPECT_THAT(parse_config("data.train = \"a,b.txt\"", "x").data.train, ElementsAre("a,b.txt"));
}

TEST(Config, byte_order_mark_and_crlf_are_fine) {
  const Config config = parse_config("\xEF\xBB\xBF[model]\r\nd_model = 64\r\n", "x.toml");
  EXPECT_EQ(config.model.d_model, 64);
  EXPECT_EQ(config.origin.at("model.d_model"), "x.toml:2");
}

TEST(Config, every_alias_sets_its_field) {
  const std::map<std::string, std::string> aliases = {
      {"n_embd", "d_model"},
      {"hidden_size", "d_model"},
      {"dim", "d_model"},
      {"C", "d_model"},
      {"block_size", "max_seq_len"},
      {"n_ctx", "max_seq_len"},
      {"n_positions", "max_seq_len"},
      {"max_position_embeddings", "max_seq_len"},
      {"n_layers", "n_layer"},
      {"num_hidden_layers", "n_layer"},
      {"num_attention_heads", "n_head"},
      {"n_heads", "n_head"},
      {"num_key_value_heads", "n_kv_head"},
      {"n_kv_heads", "n_kv_head"},
      {"intermediate_size", "d_ff"},
      {"hidden_dim", "d_ff"},
  };
  for (const auto& [alias, field] : aliases) {
    const std::string value = field == "max_seq_len" || field == "d_model" ? "256" : "2";
    const Config file = parse_config("[model]\n" + alias + " = " + value + "\n", "x.toml");
    EXPECT_EQ(values(file).at("model." + field), value) << alias;
    EXPECT_EQ(file.origin.at("model." + field), "x.toml:2") << alias;
    EXPECT_EQ(values(parse_config("", "x", {"model." + alias + "=" + value})).at("model." + field), value) << alias;
  }
}

TEST(Config, overrides_are_typed_by_the_field) {
  const Config config = parse_config("[train]\nsteps = 10\n[model]\nn_embd = 64\n", "x.toml",
                                     {"train.steps=20", "optim.lr=0", "optim.weight_decay=1e-3", "model.tied=false",
                                      "data.train=a b.txt,c.txt", "data.val=[\"d,e.txt\"]", "train.sample_prompt=1",
                                      "train.schedule.min_ratio=+.5", "model.d_model=32", "data.tokenizer=\"x\\ty\""});
  EXPECT_EQ(config.train.steps, 20);
  EXPECT_EQ(config.optim.optimizer->lr(), 0.0);
  EXPECT_EQ(config.optim.optimizer->weight_decay(), 1e-3);
  EXPECT_FALSE(config.model.tied);
  EXPECT_THAT(config.data.train, ElementsAre("a b.txt", "c.txt"));
  EXPECT_THAT(config.data.val, ElementsAre("d,e.txt"));
  EXPECT_EQ(config.train.sample_prompt, "1");
  EXPECT_EQ(config.train.schedule.min_ratio, 0.5);
  EXPECT_EQ(config.model.d_model, 32);
  EXPECT_EQ(config.data.tokenizer, "x\ty");
}

TEST(Config, the_last_override_of_a_field_counts) {
  EXPECT_EQ(parse_config("", "x", {"train.steps=1", "train.steps=2"}).train.steps, 2);
}

TEST(Config, origin_says_where_each_value_came_from) {
  const Config config = parse_config("[model]\n\nn_embd = 64\n[[optim.group]]\nparams = \"*\"\n", "dir/x.toml", {"train.steps=5"});
  EXPECT_EQ(config.origin.at("model.d_model"), "dir/x.toml:3");
  EXPECT_EQ(config.origin.at("optim.group.0.params"), "dir/x.toml:5");
  EXPECT_EQ(config.origin.at("optim.group.0.lr"), "[optim]");
  EXPECT_EQ(config.origin.at("train.steps"), "command line");
  EXPECT_EQ(config.origin.at("optim.lr"), "default");
  for (const ConfigField& field : config_fields(config)) EXPECT_EQ(config.origin.count(field.key), 1u) << field.key;
}

TEST(Config, a_group_without_a_rule_is_optim_with_changes) {
  const Config config = parse_config(R"(
[optim]
rule = "adamw"
lr = 0.5
beta1 = 0.25
[[optim.group]]
params = "head.*"
lr = 0.125
[[optim.group]]
params = "embed.*"
rule = "adamw"
)",
                                     "x.toml");
  const auto all = values(config);
  EXPECT_EQ(all.at("optim.group.0.rule"), "\"adamw\"");
  EXPECT_EQ(all.at("optim.group.0.lr"), "0.125");
  EXPECT_EQ(all.at("optim.group.0.beta1"), "0.25");
  EXPECT_EQ(all.at("optim.group.1.beta1"), values(parse_config("", "x")).at("optim.beta1"));
  EXPECT_NE(config.groups[0].optimizer, config.optim.optimizer);
}

TEST(Config, overrides_reach_groups_and_add_one) {
  const std::string text = "[model]\ntied = false\n[[optim.group]]\nparams = \"a\"\n";
  const Config config =
      parse_config(text, "x", {"optim.group[0].lr=0.5", "optim.group.1.params=embed.*", "optim.group.1.rule=sparse_adam"});
  ASSERT_EQ(config.groups.size(), 2u);
  EXPECT_EQ(config.groups[0].optimizer->lr(), 0.5);
  EXPECT_EQ(config.groups[1].params, "embed.*");
  EXPECT_EQ(config.groups[1].rule, "sparse_adam");
}

TEST(Config, shipped_files_parse_and_their_resolved_copies_are_the_same_config) {
  const auto paths = shipped_configs();
  ASSERT_GE(paths.size(), 8u);
  for (const auto& path : paths) {
    const Config config = load_config(path.string());
    const Config again = parse_config(resolved_toml(config), "config.toml");
    EXPECT_EQ(values(again), values(config)) << path;
    EXPECT_EQ(again.name, path.stem().string());
  }
}

TEST(Config, the_cpu_setting_is_nanogpts) {
  const Config c = load_config(ROWAN_SOURCE_DIR "/configs/shakespeare_char_cpu.toml");
  const auto all = values(c);
  const std::map<std::string, std::string> expected = {
      {"model.n_layer", "4"},
      {"model.n_head", "4"},
      {"model.d_model", "128"},
      {"model.max_seq_len", "64"},
      {"data.seq_len", "64"},
      {"data.batch_size", "12"},
      {"train.steps", "2000"},
      {"model.dropout", "0.0"},
      {"optim.lr", "0.001"},
      {"train.schedule.min_ratio", "0.1"},
      {"train.schedule.kind", "\"cosine\""},
      {"train.schedule.warmup", "100"},
      {"optim.beta1", "0.9"},
      {"optim.beta2", "0.99"},
      {"optim.weight_decay", "0.1"},
      {"train.clip_norm", "1.0"},
      {"model.tied", "true"},
      {"model.bias", "false"},
      {"data.val_fraction", "0.1"},
      {"model.mlp", "\"gelu\""},
  };
  for (const auto& [key, value] : expected) EXPECT_EQ(all.at(key), value) << key;
}

TEST(ResolvedToml, survives_values_and_names_that_need_escapes) {
  Config config = parse_config("", "x");
  config.train.sample_prompt = "\"\\ \n\t\x01\x7F \u00e9 # no comment";
  config.data.train = {"a\"b", "c,d"};
  config.train.clip_norm = 0.1 + 0.2;
  config.model.norm_eps = std::numeric_limits<double>::denorm_min();
  config.model.rope.theta = std::numeric_limits<double>::max();
  config.train.seed = std::numeric_limits<int64_t>::max();
  config.origin["train.seed"] = "odd\nname.toml:1";
  const Config again = parse_config(resolved_toml(config), "config.toml");
  EXPECT_EQ(again.train.sample_prompt, config.train.sample_prompt);
  EXPECT_EQ(again.data.train, config.data.train);
  EXPECT_EQ(again.train.clip_norm, config.train.clip_norm);
  EXPECT_EQ(again.model.norm_eps, config.model.norm_eps);
  EXPECT_EQ(again.model.rope.theta, config.model.rope.theta);
  EXPECT_EQ(again.train.seed, config.train.seed);
}

TEST(ResolvedToml, says_where_a_value_came_from) {
  const std::string text = resolved_toml(parse_config("model.d_model = 64", "a.toml", {"train.steps=5"}));
  EXPECT_THAT(text, HasSubstr("\nd_model = 64  # a.toml:1\n"));
  EXPECT_THAT(text, HasSubstr("\nsteps = 5  # command line\n"));
  EXPECT_THAT(text, HasSubstr("\nn_layer = 4  # default\n"));
}

// A locale whose decimal point is a comma must not change what is read or written. Without such a locale on the machine the C++
// side is still covered: the global std::locale gets a comma of its own.
class CommaPoint : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Config, numbers_do_not_depend_on_the_locale) {
  const std::string saved = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  const std::locale outer = std::locale::global(std::locale(std::locale(), new CommaPoint));
  const Config config = parse_config("[train]\nclip_norm = 1.5\nsteps = 1234567\n", "x", {"optim.lr=2.5e-4"});
  const std::string text = resolved_toml(config);
  std::locale::global(outer);
  std::setlocale(LC_ALL, saved.c_str());
  EXPECT_EQ(config.train.clip_norm, 1.5);
  EXPECT_EQ(config.optim.optimizer->lr(), 2.5e-4);
  EXPECT_THAT(text, HasSubstr("steps = 1234567 "));
  EXPECT_THAT(text, HasSubstr("clip_norm = 1.5 "));
  EXPECT_THAT(text, HasSubstr("lr = 0.00025 "));
}

}  // namespace
}  // namespace rowan
