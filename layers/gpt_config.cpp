#include "layers/gpt_config.h"

#include <cmath>

#include "core/error.h"

namespace rowan {
namespace {

// Products of sizes stay far from 2^63, so no later code needs to check them.
constexpr double kMaxParameters = 1LL << 40;

double parameter_estimate(const GptConfig& c) {
  const auto d = static_cast<double>(c.d_model);
  const auto kv = static_cast<double>(c.kv_heads()) * static_cast<double>(c.head_dim());
  const double attention = d * (2 * d + 2 * kv);
  const double mlp = (c.mlp == "swiglu" ? 3 : 2) * d * static_cast<double>(c.ff_width());
  const double tables = static_cast<double>(c.vocab_size) * (c.tied ? 1 : 2);
  const double positions = c.positions == "learned" ? static_cast<double>(c.max_seq_len) : 0;
  return static_cast<double>(c.n_layer) * (attention + mlp) + d * (tables + positions);
}

std::optional<GptConfigProblem> find_head_problem(const GptConfig& c) {
  if (c.d_model % c.n_head != 0) {
    return GptConfigProblem{
        {"d_model", "n_head"},
        join_text("n_head = ", c.n_head, " does not divide d_model = ", c.d_model, ": every head has the same width"),
        {}};
  }
  if (c.n_head % c.kv_heads() != 0) {
    return GptConfigProblem{{"n_kv_head", "n_head"},
                            join_text("n_kv_head = ", c.n_kv_head, " does not divide n_head = ", c.n_head,
                                      ": every key/value head serves the same number of query heads"),
                            {}};
  }
  return std::nullopt;
}

std::optional<GptConfigProblem> find_rope_problem(const GptConfig& c) {
  const double wanted = c.rope.fraction * static_cast<double>(c.head_dim());
  const int64_t width = c.rotated_width();
  const bool even = std::fabs(wanted - static_cast<double>(width)) <= 1e-6 * static_cast<double>(c.head_dim());
  if (even && width >= 2) return std::nullopt;
  return GptConfigProblem{
      {"rope.fraction", "d_model", "n_head"},
      join_text("rope.fraction = ", c.rope.fraction, " of a head's ", c.head_dim(), " elements (d_model / n_head) is ", wanted,
                ", but rotation works on pairs: it must be an even number, at least 2"),
      {}};
}

}  // namespace

int64_t GptConfig::ff_width() const {
  if (d_ff != 0) return d_ff;
  if (mlp != "swiglu") return 4 * d_model;
  return (8 * d_model + 95) / 96 * 32;  // ceil(8/3 * d_model / 32) * 32
}

int64_t GptConfig::rotated_width() const {
  return 2 * std::llround(rope.fraction * static_cast<double>(head_dim()) / 2);
}

std::optional<GptConfigProblem> GptConfig::find_problem() const {
  if (auto problem = find_head_problem(*this)) return problem;
  if (positions == "rope") {
    if (auto problem = find_rope_problem(*this)) return problem;
  }
  const double parameters = parameter_estimate(*this);
  if (parameters > kMaxParameters) {
    return GptConfigProblem{{"d_model", "n_layer", "d_ff", "vocab_size"},
                            join_text("this model has ", parameters, " parameters; at most ", kMaxParameters, " can be addressed"),
                            {}};
  }
  return std::nullopt;
}

void GptConfig::resolve() {
  ROWAN_CHECK(vocab_size > 0, "[gpt config] vocab_size = ", vocab_size, ": the number of token ids must be known to build a model");
  if (const auto problem = find_problem()) throw Error("[gpt config] " + problem->what, ErrorKind::kUsage, problem->hint);
  n_kv_head = kv_heads();
  d_ff = ff_width();
}

}  // namespace rowan
