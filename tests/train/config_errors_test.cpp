// Wrong configs and overrides: each gives one error with its place, what was expected, what came, and the likely fix.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "train/config.h"

namespace rowan {
namespace {

using testing::HasSubstr;

struct WrongConfig {
  const char* about;
  std::string text;
  std::vector<std::string> overrides;
  std::vector<std::string> message;  // parts of it, the place first
  std::string hint;                  // a part of it; "" when none is given
};

// Prints as what it is about in test listings and failures.
void PrintTo(const WrongConfig& wrong, std::ostream* out) {
  *out << wrong.about;
}

class WrongConfigs : public testing::TestWithParam<WrongConfig> {};

TEST_P(WrongConfigs, are_refused_with_place_expectation_and_hint) {
  const WrongConfig& wrong = GetParam();
  try {
    parse_config(wrong.text, "a.toml", wrong.overrides);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    const std::string message = e.what();
    EXPECT_THAT(message, testing::StartsWith("[config] "));
    for (const std::string& part : wrong.message) EXPECT_THAT(message, HasSubstr(part));
    for (const char c : message + e.hint()) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20) << message;
    if (wrong.hint.empty()) {
      EXPECT_EQ(e.hint(), "");
    } else {
      EXPECT_THAT(e.hint(), HasSubstr(wrong.hint));
    }
  }
}

// Not TOML at all.
INSTANTIATE_TEST_SUITE_P(
    Syntax, WrongConfigs,
    testing::Values(WrongConfig{"no value", "[model]\nd_model =\n", {}, {"a.toml:2:", "this is not TOML"}, ""},
                    WrongConfig{"open string", "[data]\ntokenizer = \"char\n", {}, {"a.toml:2:", "this is not TOML"}, ""},
                    WrongConfig{"open table", "[model\nd_model = 3\n", {}, {"a.toml:1:", "this is not TOML"}, ""},
                    WrongConfig{"key twice", "[model]\nd_model = 64\nd_model = 128\n", {}, {"a.toml:3:", "this is not TOML"}, ""},
                    WrongConfig{"table twice", "[model]\n[data]\n[model]\n", {}, {"a.toml:3:", "this is not TOML"}, ""},
                    WrongConfig{
                        "integer past 64 bits", "train.seed = 9223372036854775808\n", {}, {"a.toml:1:", "this is not TOML"}, ""},
                    WrongConfig{"invalid UTF-8", "name = \"\xC3\x28\"\n", {}, {"a.toml:1:", "this is not TOML"}, ""},
                    WrongConfig{"NUL byte", std::string("name = \"a\0b\"\n", 13), {}, {"a.toml:1:", "this is not TOML"}, ""},
                    WrongConfig{"yaml", "model:\n  d_model: 64\n", {}, {"a.toml:1:", "this is not TOML"}, ""}));

INSTANTIATE_TEST_SUITE_P(
    Keys, WrongConfigs,
    testing::Values(
        WrongConfig{"misspelt field",
                    "[model]\n\n  n_hed = 4\n",
                    {},
                    {"a.toml:3:3:", "[model] has no key \"n_hed\""},
                    "did you mean model.n_head?"},
        WrongConfig{"swapped letters",
                    "[train]\nstpes = 4\n",
                    {},
                    {"a.toml:2:1:", "[train] has no key \"stpes\""},
                    "did you mean train.steps?"},
        WrongConfig{"misspelt alias", "[model]\nn_emdb = 4\n", {}, {"a.toml:2:1:"}, "did you mean model.n_embd?"},
        WrongConfig{"misspelt table",
                    "[trian]\nsteps = 4\n",
                    {},
                    {"a.toml:1:2:", "the top level has no key \"trian\""},
                    "did you mean train?"},
        WrongConfig{"misspelt inner table",
                    "[train.shedule]\nkind = \"wsd\"\n",
                    {},
                    {"a.toml:1:8:", "[train] has no key \"shedule\""},
                    "did you mean train.schedule?"},
        WrongConfig{"field of another table", "[model]\nbatch_size = 4\n", {}, {"a.toml:2:1:"}, "batch_size stands in [data]"},
        WrongConfig{"field at the top", "steps = 4\n", {}, {"a.toml:1:1:", "the top level"}, "steps stands in [train]"},
        WrongConfig{"another trainer's name", "[train]\nlearning_rate = 1\n", {}, {"a.toml:2:1:"}, "here it is called optim.lr"},
        WrongConfig{"nothing near", "[data]\nxyzzy = 4\n", {}, {"a.toml:2:1:", "[data] has no key \"xyzzy\""}, ""},
        WrongConfig{"control characters in a key", "[data]\n\"x\\u001B[31m\" = 4\n", {}, {"a.toml:2:1:", "\\u001B"}, ""},
        WrongConfig{"two spellings",
                    "[model]\nd_model = 64\nn_embd = 64\n",
                    {},
                    {"a.toml:3:1:", "n_embd is another name of model.d_model, which line 2 sets as d_model"},
                    "keep one of them, best d_model"},
        WrongConfig{
            "two aliases", "[model]\nhidden_size = 64\ndim = 64\n", {}, {"a.toml:3:1:", "line 2 sets as hidden_size"}, "d_model"},
        WrongConfig{"value for a table", "model = 3\n", {}, {"a.toml:1:1:", "expected [model], got the integer 3"}, ""},
        WrongConfig{"list for a table", "[[data]]\n", {}, {"a.toml:1:", "expected [data], got an array"}, ""},
        WrongConfig{"table for a value",
                    "[model.d_model]\nx = 1\n",
                    {},
                    {"a.toml:1:", "model.d_model must be an integer", "got a table"},
                    ""}));

INSTANTIATE_TEST_SUITE_P(
    Values, WrongConfigs,
    testing::Values(
        WrongConfig{"string for an integer",
                    "[model]\nn_head = \"four\"\n",
                    {},
                    {"a.toml:2:10: model.n_head must be an integer from 1 to 16777216, got the string \"four\""},
                    ""},
        WrongConfig{"whole real for an integer",
                    "[train]\nsteps = 1e3\n",
                    {},
                    {"a.toml:2:9: train.steps must be an integer of at least 0, got the number 1000"},
                    "write it without point or exponent: 1000"},
        WrongConfig{"real for an integer", "[train]\nsteps = 1.5\n", {}, {"a.toml:2:9:", "got the number 1.5"}, ""},
        WrongConfig{"boolean for an integer", "[train]\nsteps = true\n", {}, {"a.toml:2:9:", "got true"}, ""},
        WrongConfig{"integer for a boolean",
                    "[model]\nbias = 0\n",
                    {},
                    {"a.toml:2:8: model.bias must be true or false, got the integer 0"},
                    ""},
        WrongConfig{"string for a boolean",
                    "[model]\nbias = \"true\"\n",
                    {},
                    {"model.bias must be true or false, got the string \"true\""},
                    ""},
        WrongConfig{"date for a real",
                    "[train]\nclip_norm = 2020-01-01\n",
                    {},
                    {"a.toml:2:13:", "must be a number of at least 0, got a date or time"},
                    ""},
        WrongConfig{"string for a real",
                    "[train]\nclip_norm = \"1\"\n",
                    {},
                    {"train.clip_norm must be a number of at least 0, got the string \"1\""},
                    ""},
        WrongConfig{"number for a string",
                    "[data]\ntokenizer = 3\n",
                    {},
                    {"a.toml:2:13: data.tokenizer must be a string, got the integer 3"},
                    ""},
        WrongConfig{"number for a path",
                    "[data]\ntrain = 3\n",
                    {},
                    {"data.train must be a string or an array of strings, got the integer 3"},
                    ""},
        WrongConfig{
            "number among paths", "[data]\ntrain = [\"a\", 3]\n", {}, {"a.toml:2:9: data.train", "got the integer 3 in it"}, ""},
        WrongConfig{"empty path", "[data]\ntrain = [\"\"]\n", {}, {"data.train", "not empty", "got the string \"\" in it"}, ""},
        WrongConfig{"NUL in a path", "[data]\ntrain = \"a\\u0000b\"\n", {}, {"data.train must not hold the character U+0000"}, ""},
        WrongConfig{"zero heads",
                    "[model]\nn_head = 0\n",
                    {},
                    {"a.toml:2:10: model.n_head must be an integer from 1 to", "got the integer 0"},
                    ""},
        WrongConfig{"negative steps",
                    "[train]\nsteps = -1\n",
                    {},
                    {"a.toml:2:9: train.steps must be an integer of at least 0, got the integer -1"},
                    ""},
        WrongConfig{"too large",
                    "[model]\nd_model = 99999999\n",
                    {},
                    {"model.d_model must be an integer from 1 to 16777216, got the integer 99999999"},
                    ""},
        WrongConfig{
            "open end", "[model]\ndropout = 1\n", {}, {"model.dropout must be a number from 0 to below 1, got the integer 1"}, ""},
        WrongConfig{"open beginning",
                    "[model.rope]\nfraction = 0.0\n",
                    {},
                    {"model.rope.fraction must be a number above 0, up to 1, got the number 0"},
                    ""},
        WrongConfig{
            "nan", "[train]\nclip_norm = nan\n", {}, {"train.clip_norm must be a number of at least 0, got the number nan"}, ""},
        WrongConfig{"infinity",
                    "[train]\nclip_norm = inf\n",
                    {},
                    {"train.clip_norm must be a number of at least 0, got the number inf"},
                    ""},
        WrongConfig{"unknown choice",
                    "[model]\nmlp = \"gelu_tanhh\"\n",
                    {},
                    {"a.toml:2:7: model.mlp must be one of \"gelu_tanh\", \"gelu\", \"swiglu\", got the string \"gelu_tanhh\""},
                    "did you mean \"gelu_tanh\"?"},
        WrongConfig{"far choice", "[model]\nmlp = \"relu6xyz\"\n", {}, {"model.mlp must be one of"}, ""},
        WrongConfig{
            "long string", "[model]\nmlp = \"" + std::string(5000, 'y') + "\"\n", {}, {"got the string \"yyy", "...\""}, ""}));

INSTANTIATE_TEST_SUITE_P(
    Optim, WrongConfigs,
    testing::Values(WrongConfig{"unknown rule",
                                "[optim]\nrule = \"adamm\"\n",
                                {},
                                {"a.toml:2:8: optim.rule must be one of", "\"adamw\"", "got the string \"adamm\""},
                                "did you mean \"adam"},
                    WrongConfig{"another rule's field",
                                "[optim]\nrule = \"sgd\"\nbeta1 = 0.9\n",
                                {},
                                {"a.toml:3:1: [optim] has no key \"beta1\"", "rule \"sgd\", a.toml:2"},
                                ""},
                    WrongConfig{"rule from the command line",
                                "[optim]\nbeta1 = 0.9\n",
                                {"optim.rule=sgd"},
                                {"a.toml:2:1:", "(rule \"sgd\", command line)"},
                                ""},
                    WrongConfig{"misspelt rule field", "[optim]\nbeta_1 = 0.9\n", {}, {"a.toml:2:1:"}, "did you mean optim.beta1?"},
                    WrongConfig{
                        "out of range", "[optim]\nbeta1 = 1\n", {}, {"a.toml:2:9: optim.beta1 must be", "got the integer 1"}, ""},
                    WrongConfig{"negative rate",
                                "[optim]\nlr = -1e-3\n",
                                {},
                                {"a.toml:2:6: optim.lr must be a number of at least 0, got the number -0.001"},
                                ""},
                    WrongConfig{"group without params",
                                "[[optim.group]]\nrule = \"sgd\"\n",
                                {},
                                {"a.toml:1:", "optim.group.0.params is missing"},
                                "params = "},
                    WrongConfig{"group as one table",
                                "[optim.group]\nparams = \"*\"\n",
                                {},
                                {"a.toml:1:", "optim.group is a list of tables, got a table"},
                                "[[optim.group]]"},
                    WrongConfig{"misspelt group field",
                                "[[optim.group]]\nparams = \"*\"\n[[optim.group]]\nparam = \"*\"\nparams = \"*\"\n",
                                {},
                                {"a.toml:4:1:", "[optim.group.1] has no key \"param\""},
                                "did you mean optim.group.1.params?"},
                    WrongConfig{"sparse rule on a tied table",
                                "[[optim.group]]\nparams = \"embed.*\"\nrule = \"sparse_adam\"\n",
                                {},
                                {"a.toml:3:", "optim.group.0.rule = \"sparse_adam\"", "model.tied = true",
                                 "softmax gives every row a gradient"},
                                "model.tied = false"},
                    WrongConfig{"sparse rule for everything",
                                "[optim]\nrule = \"sparse_adam\"\n",
                                {},
                                {"a.toml:2:", "softmax gives every row a gradient"},
                                "tied"}));

INSTANTIATE_TEST_SUITE_P(
    Overrides, WrongConfigs,
    testing::Values(
        WrongConfig{"no equals sign", "", {"train.steps"}, {"--set train.steps: expected key=value"}, ""},
        WrongConfig{"no key", "", {"=3"}, {"--set =3: the key before '=' is missing"}, ""},
        WrongConfig{"unknown key",
                    "",
                    {"train.stesp=3"},
                    {"--set train.stesp=3: there is no key \"train.stesp\""},
                    "did you mean train.steps?"},
        WrongConfig{"no table", "", {"steps=3"}, {"--set steps=3: there is no key \"steps\""}, "steps stands in [train]"},
        WrongConfig{"a table", "", {"model=3"}, {"--set model=3: there is no key \"model\""}, "model is a table"},
        WrongConfig{"wrong type",
                    "",
                    {"train.steps=ten"},
                    {"--set train.steps=ten: train.steps must be an integer of at least 0, got the string \"ten\""},
                    ""},
        WrongConfig{"whole real", "", {"train.steps=1e3"}, {"got the number 1000"}, "1000"},
        WrongConfig{
            "trailing garbage", "", {"optim.lr=1e-3x"}, {"optim.lr must be a number of at least 0, got the string \"1e-3x\""}, ""},
        WrongConfig{"empty number", "", {"optim.lr="}, {"optim.lr must be a number", "got the string \"\""}, ""},
        WrongConfig{"decimal comma", "", {"optim.lr=0,5"}, {"got the string \"0,5\""}, ""},
        WrongConfig{"number for a boolean", "", {"model.tied=1"}, {"model.tied must be true or false, got the integer 1"}, ""},
        WrongConfig{"word for a boolean", "", {"model.tied=yes"}, {"model.tied must be true or false, got the string \"yes\""}, ""},
        WrongConfig{"out of range",
                    "",
                    {"model.n_head=0"},
                    {"--set model.n_head=0: model.n_head must be an integer from 1", "got the integer 0"},
                    ""},
        WrongConfig{"unknown choice",
                    "",
                    {"data.order=shufled"},
                    {"--set data.order=shufled: data.order must be one of"},
                    "did you mean \"shuffled\"?"},
        WrongConfig{"two spellings",
                    "",
                    {"model.d_model=64", "model.n_embd=64"},
                    {"--set model.n_embd=64: n_embd is another name of model.d_model"},
                    ""},
        WrongConfig{"a group that is not next",
                    "",
                    {"optim.group.2.lr=1"},
                    {"groups are numbered from 0, and the next one is 0, got \"2\""},
                    ""},
        WrongConfig{"a group without number", "", {"optim.group.x.lr=1"}, {"groups are numbered from 0", "got \"x\""}, ""},
        WrongConfig{"a new group without params", "", {"optim.group.0.lr=1"}, {"optim.group.0.params is missing"}, "params"},
        WrongConfig{"broken array", "", {"data.train=[\"a\",]]"}, {"--set data.train", "this is not TOML"}, ""},
        WrongConfig{"a second key in a value", "", {"data.train=[]\nx = [\"a\"]"}, {"expected one value"}, ""},
        WrongConfig{"invalid UTF-8", "", {"data.train=a\xFF"}, {"must be UTF-8"}, ""},
        WrongConfig{"terminal escapes", "", {"train.\x1B[31m=3"}, {"--set train.\\u001B"}, ""}));

INSTANTIATE_TEST_SUITE_P(
    Combinations, WrongConfigs,
    testing::Values(
        WrongConfig{"heads do not divide",
                    "[model]\nd_model = 100\nn_head = 3\n",
                    {},
                    {"a.toml:2", "a.toml:3", "n_head = 3 does not divide d_model = 100"},
                    ""},
        WrongConfig{
            "groups do not divide", "[model]\nn_kv_head = 3\n", {}, {"a.toml:2", "n_kv_head = 3 does not divide n_head = 4"}, ""},
        WrongConfig{"odd head with rope",
                    "[model]\npositions = \"rope\"\nd_model = 36\n",
                    {},
                    {"a.toml:3:", "9 elements", "even number"},
                    ""},
        WrongConfig{"fraction too small",
                    "[model]\npositions = \"rope\"\n[model.rope]\nfraction = 0.01\n",
                    {},
                    {"a.toml:4", "rope.fraction = 0.01", "at least 2"},
                    ""},
        WrongConfig{"fraction between pairs", "[model]\npositions = \"rope\"\nrope.fraction = 0.3\n", {}, {"a.toml:3", "9.6"}, ""},
        WrongConfig{"longer than positions",
                    "[data]\nseq_len = 128\n",
                    {"model.max_seq_len=32"},
                    {"a.toml:2, command line: data.seq_len = 128 is longer than model.max_seq_len = 32"},
                    "set model.max_seq_len = 128"},
        WrongConfig{"batch past 2^31",
                    "[model]\npositions = \"none\"\n[data]\nseq_len = 65536\nbatch_size = 32768\n",
                    {},
                    {"a.toml:4, a.toml:5", "2^31"},
                    ""},
        WrongConfig{"model past counting",
                    "[model]\nd_model = 16777216\nn_head = 1\nd_ff = 67108864\nn_layer = 4096\n",
                    {},
                    {"parameters; at most"},
                    ""},
        WrongConfig{"as many negatives as ids",
                    "[train]\nloss = \"sampled\"\n[train.sampled]\nnegatives = 60\n[data.zipf]\nvocab_size = 60\n",
                    {"model.tied=false", "data.train=builtin:zipf"},
                    {"a.toml:4", "train.sampled.negatives = 60", "60 ids"},
                    "lower train.sampled.negatives"},
        WrongConfig{"axes by --set",
                    "[optim]\nlr = 1\n",
                    {"optim.counter=row"},
                    {"a.toml:1:1, command line: optim:", "counter = \"row\""},
                    ""},
        WrongConfig{"cowclip for blocks",
                    "model.tied = false\n[[optim.group]]\nparams = \"*\"\nclip = \"cowclip\"\n",
                    {},
                    {"a.toml:4", "optim.group.0.clip = \"cowclip\"", "how often a batch read each row", "blocks.0."},
                    "row_norm"},
        WrongConfig{"cowclip for a tied table",
                    "[[optim.group]]\nparams = \"embed.tokens.weight\"\nclip = \"cowclip\"\n",
                    {},
                    {"a.toml:3", "embed.tokens.weight is dense"},
                    "model.tied = false"},
        WrongConfig{"a rule for rows in [optim]",
                    "model.tied = false\n[optim]\nrule = \"sparse_adam\"\n",
                    {},
                    {"a.toml:3", "optim.rule = \"sparse_adam\"", "updates only rows", "is dense"},
                    "params = \"embed.*\""},
        WrongConfig{"nothing to evaluate",
                    "[data]\nval_fraction = 0\n[train]\neval_every = 5\n",
                    {},
                    {"a.toml:4, a.toml:2", "nothing is left to evaluate"},
                    ""},
        WrongConfig{"decay before warm-up ends",
                    "[train.schedule]\nwarmup = 10\ndecay_steps = 10\n",
                    {},
                    {"a.toml:3, a.toml:2", "not after"},
                    ""},
        WrongConfig{
            "unknown built-in data", "[data]\ntrain = \"builtin:srot\"\n", {}, {"a.toml:2", "builtin:srot", "builtin:sort"}, ""},
        WrongConfig{"built-in data of another length",
                    "[data]\ntrain = \"builtin:sort\"\nseq_len = 12\n",
                    {},
                    {"a.toml:2, a.toml:3", "11", "12"},
                    "11"},
        WrongConfig{"built-in data among files", "[data]\ntrain = [\"a.txt\", \"builtin:sort\"]\n", {}, {"stands alone"}, ""},
        WrongConfig{
            "a name with a slash", "name = \"../x\"\n", {}, {"a.toml:1: name must be usable as a directory's name"}, "name ="},
        WrongConfig{"a name of dots", "", {"name=.."}, {"command line: name must be usable"}, "name ="}));

TEST(ConfigFile, that_is_missing_or_a_directory_is_refused_by_name) {
  for (const std::string path : {"/no/such/config.toml", "/"}) {
    try {
      load_config(path);
      FAIL() << path;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage);
      EXPECT_THAT(e.what(), HasSubstr(path));
    }
  }
}

}  // namespace
}  // namespace rowan
