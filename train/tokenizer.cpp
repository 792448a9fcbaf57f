#include "train/tokenizer.h"

#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "train/json_text.h"
#include "train/tokenizer_byte.h"
#include "train/tokenizer_char.h"
#include "train/tokenizer_number.h"

namespace rowan {

uint64_t Tokenizer::hash() const {
  const std::string bytes = serialize();
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const TextPlace& place) const {
  std::vector<int32_t> out;
  out.reserve(text.size());
  encode(text, place, out);
  return out;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string out;
  for (int32_t id : ids) append_token(id, out);
  return out;
}

int64_t Tokenizer::count_bytes(std::span<const int32_t> ids) const {
  int64_t total = 0;
  for (int32_t id : ids)
    if (id != kIgnored) total += bytes_of(id);
  return total;
}

std::unique_ptr<Tokenizer> Tokenizer::make(const std::string& kind, std::string_view text, const TextPlace& place) {
  if (kind == "byte") return std::make_unique<ByteTokenizer>();
  ROWAN_CHECK(kind == "char", "[tokenizer] expected \"char\" or \"byte\", got \"", kind, "\"");
  CharacterSet set;
  set.add(text, place);
  if (text.empty()) fail_data("[tokenizer] ", place.name, " is empty: there is no character to make a vocabulary of");
  return std::make_unique<CharTokenizer>(set.sorted());
}

std::unique_ptr<Tokenizer> Tokenizer::deserialize(std::string_view bytes, const std::string& name) {
  nlohmann::json doc;
  try {
    doc = parse_json<nlohmann::json>(bytes);
  } catch (const nlohmann::json::exception&) {
    doc = nullptr;
  } catch (const Error& e) {
    fail_data("[tokenizer] ", name, " is not a saved tokenizer: ", e.what());
  }
  if (!doc.is_object() || !doc.contains("format") || doc["format"] != "rowan-tokenizer")
    fail_data("[tokenizer] ", name, " is not a saved tokenizer (JSON with \"format\": \"rowan-tokenizer\")");
  if (!doc.contains("version") || !doc["version"].is_number_integer() || doc["version"] != 1)
    fail_data("[tokenizer] ", name, " has tokenizer version ", doc.contains("version") ? doc["version"].dump() : "(none)",
              "; this program reads version 1");
  const std::string kind = doc.contains("kind") && doc["kind"].is_string() ? doc["kind"].get<std::string>() : "";
  if (kind == "byte") return std::make_unique<ByteTokenizer>();
  if (kind == "number") {
    const auto size = doc.find("vocab_size");
    if (size == doc.end() || !size->is_number_integer() || *size < 1 || *size >= int64_t{1} << 31)
      fail_data("[tokenizer] ", name, ": a number tokenizer needs \"vocab_size\", an integer from 1 to below 2^31");
    return std::make_unique<NumberTokenizer>(size->get<int64_t>());
  }
  if (kind != "char") fail_data("[tokenizer] ", name, ": expected \"kind\" \"char\", \"byte\" or \"number\", got \"", kind, "\"");
  if (!doc.contains("characters") || !doc["characters"].is_string())
    fail_data("[tokenizer] ", name, ": a char tokenizer needs \"characters\", a string");
  return CharTokenizer::from_characters(doc["characters"].get<std::string>(), name);
}

void ByteTokenizer::encode(std::string_view text, const TextPlace&, std::vector<int32_t>& out) const {
  for (char c : text) out.push_back(static_cast<unsigned char>(c));
}

void ByteTokenizer::append_token(int32_t id, std::string& out) const {
  bytes_of(id);
  out += static_cast<char>(id);
}

int64_t ByteTokenizer::bytes_of(int32_t id) const {
  ROWAN_CHECK(id >= 0 && id < 256, "[tokenizer] id ", id, " is outside [0, 256)");
  return 1;
}

std::string ByteTokenizer::serialize() const {
  return nlohmann::json{{"format", "rowan-tokenizer"}, {"version", 1}, {"kind", kind()}}.dump() + "\n";
}

}  // namespace rowan
