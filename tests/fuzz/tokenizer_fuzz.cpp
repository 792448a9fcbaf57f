// Tokenizers, from saved form or from text, and the decoder that shows their bytes. The first byte chooses: 0 a saved tokenizer up
// to the first line end and text after it, 1 a char tokenizer of the first line and that text, 2 bytes.
#include "tests/fuzz/fuzz_input.h"
#include "train/stream_decoder.h"
#include "train/tokenizer.h"
#include "train/utf8.h"

namespace rowan::fuzz {
namespace {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char c = read_utf8(text);
    if (c.status != Utf8Char::Status::kOk) return false;
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return true;
}

std::shared_ptr<const Tokenizer> make(int kind, std::string_view first_line) {
  if (kind == 0) return Tokenizer::deserialize(first_line, "fuzz");
  return Tokenizer::make(kind == 1 ? "char" : "byte", first_line);
}

void use(const std::shared_ptr<const Tokenizer>& tokenizer, std::string_view text) {
  const std::string saved = tokenizer->serialize();
  const std::unique_ptr<Tokenizer> again = Tokenizer::deserialize(saved, "again");
  check(again->serialize() == saved && again->vocab_size() == tokenizer->vocab_size(), "a saved tokenizer reads back");
  const std::vector<int32_t> ids = tokenizer->encode(text);
  check(tokenizer->decode(ids) == text, "what is encoded decodes to the same text");
  check(tokenizer->count_bytes(ids) == std::ssize(text), "its length is counted right");
  check(again->encode(text) == ids, "the one that was read back gives the same ids");
  StreamDecoder decoder(tokenizer);
  std::string shown;
  for (const int32_t id : ids) shown += decoder.push(id);
  shown += decoder.finish();
  check(is_utf8(shown), "what is shown is UTF-8");
  check(!is_utf8(text) || shown == text, "UTF-8 is shown as it is");
}

}  // namespace
}  // namespace rowan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rowan::fuzz;
  Input input(data, size);
  const int kind = input.number<uint8_t>() % 3;
  const std::string_view first = input.line(), text = text_of(input.all());
  accepted([&] {
    const auto tokenizer = make(kind, first);
    accepted([&] { tokenizer->append_token(static_cast<int32_t>(first.size()) - 3, *std::make_unique<std::string>()); });
    use(tokenizer, text);
  });
  return 0;
}
