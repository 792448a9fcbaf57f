#include "train/walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/generate.h"

namespace rowan {
namespace {

constexpr int64_t kColumns = 8;        // of a row that are shown
constexpr int64_t kContinuation = 24;  // tokens at most

std::string token_name(const Tokenizer& tokenizer, int32_t id) {
  const std::vector<int32_t> one{id};
  const std::string text = tokenizer.decode(one);
  if (text == "\n") return "'\\n'";
  const bool printable = std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  return printable ? "'" + text + "'" : fmt::format("byte {}", static_cast<unsigned char>(text[0]));
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      out += "\\n";
    else if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + "'";
}

std::string row_text(std::span<const Real> row) {
  std::string out;
  const auto shown = std::min<size_t>(row.size(), kColumns);
  for (Real x : row.first(shown)) out += fmt::format(" {:8.4f}", x);
  if (row.size() > shown) out += fmt::format("  ... {} more", row.size() - shown);
  return out;
}

std::string place(int64_t position, const std::string& name) {
  return fmt::format("  position {:<3} {:<8}", position, name);
}

class Walk {
 public:
  Walk(const LoadedModel& loaded, const std::string& input)
      : loaded_(loaded),
        model_(*loaded.model),
        tokenizer_(*loaded.tokenizer),
        input_(input),
        ids_(tokenizer_.encode(input, {.name = "the text", .is_prompt = true})) {
    ROWAN_CHECK(!ids_.empty(), "[walk] the text is empty; give at least one character");
    const int64_t longest = model_.config().max_seq_len;
    ROWAN_CHECK(count() <= longest, "[walk] the text is ", count(),
                " tokens long; the model takes at most max_seq_len = ", longest);
  }

  std::string text() {
    ids();
    table("embed.tokens.weight", model_.token_table().value(), "token rows, looked up by id",
          [this](int64_t i) { return ids_[static_cast<size_t>(i)]; });
    if (model_.position_table().present()) {
      table("embed.positions.weight", model_.position_table().value(), "position rows, looked up by place",
            [](int64_t i) { return i; });
      sum();
    } else {
      out_ += fmt::format("\nNo position table (positions = \"{}\"): the token rows enter the first block as they are.\n",
                          model_.config().positions);
    }
    logits();
    continuation();
    return out_;
  }

 private:
  int64_t count() const { return static_cast<int64_t>(ids_.size()); }
  std::string name(int64_t i) const { return token_name(tokenizer_, ids_[static_cast<size_t>(i)]); }

  void ids() {
    out_ += fmt::format("ids (1,{}): each character is a number from 0 to {}\n", count(), tokenizer_.vocab_size() - 1);
    for (int64_t i = 0; i < count(); ++i) out_ += place(i, name(i)) + fmt::format(" id {}\n", ids_[static_cast<size_t>(i)]);
  }

  template <class RowOf>
  void table(const char* parameter, const Tensor& weight, const char* what, RowOf row_of) {
    out_ += fmt::format("\n{} {}: {}, ({},{})\n", parameter, weight.shape().str(), what, count(), weight.shape()[1]);
    for (int64_t i = 0; i < count(); ++i)
      out_ += place(i, name(i)) + fmt::format(" row {:<4}", row_of(i)) + row_text(weight.row(row_of(i))) + "\n";
  }

  void sum() {
    const Tensor& tokens = model_.token_table().value();
    const Tensor& positions = model_.position_table().value();
    out_ += fmt::format("\nsum ({},{}): token row + position row, what enters the first block\n", count(), tokens.shape()[1]);
    for (int64_t i = 0; i < count(); ++i) {
      std::vector<Real> row(tokens.row(ids_[static_cast<size_t>(i)]).begin(), tokens.row(ids_[static_cast<size_t>(i)]).end());
      for (size_t j = 0; j < row.size(); ++j) row[j] += positions.row(i)[j];
      out_ += place(i, name(i)) + "         " + row_text(row) + "\n";
    }
  }

  void logits() {
    const Tensor logits = model_.logits(Ids({1, count()}, ids_));
    out_ += fmt::format("\nlogits (1,{},{}): after {} blocks, a score for every token that may come next\n", count(),
                        logits.shape()[2], model_.config().n_layer);
    for (int64_t i = 0; i < count(); ++i) {
      const std::span<const Real> row = logits.row(i).first(static_cast<size_t>(tokenizer_.vocab_size()));
      const auto best = static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
      out_ += place(i, name(i)) + "         " + row_text(row) + "  -> " + token_name(tokenizer_, best) + "\n";
    }
  }

  // As far as the model can look, so that the toy that sorts six letters shows all six.
  void continuation() {
    const int64_t tokens = std::min(kContinuation, model_.config().max_seq_len - count() + 1);
    std::string text;
    generate(model_, loaded_.tokenizer, input_, {.tokens = tokens, .sampler = {.temperature = 0}},
             [&](std::string_view piece) { text += piece; });
    out_ +=
        fmt::format("\nThe last row's most likely token comes next; read in again, {} times, it gives: {}\n", tokens, quoted(text));
  }

  const LoadedModel& loaded_;
  Gpt& model_;
  const Tokenizer& tokenizer_;
  const std::string& input_;
  std::vector<int32_t> ids_;
  std::string out_;
};

}  // namespace

std::string walk_text(const LoadedModel& loaded, const std::string& input) {
  return Walk(loaded, input).text();
}

}  // namespace rowan
