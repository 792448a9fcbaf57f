#include "train/utf8.h"

#include <cstdio>

#include "core/error.h"

namespace rowan {
namespace {

struct Lead {
  int length;          // of the whole sequence; 0: not a lead byte
  uint8_t low = 0x80;  // range of the second byte: what forbids overlong forms, surrogates and too large code points
  uint8_t high = 0xBF;
  char32_t bits = 0;  // the lead byte's share of the code point
};

Lead lead_of(uint8_t b) {
  if (b < 0x80) return {.length = 1, .bits = b};
  if (b < 0xC2) return {.length = 0};
  if (b < 0xE0) return {.length = 2, .bits = b & 0x1Fu};
  if (b < 0xF0) {
    const uint8_t low = b == 0xE0 ? 0xA0 : 0x80, high = b == 0xED ? 0x9F : 0xBF;
    return {.length = 3, .low = low, .high = high, .bits = b & 0x0Fu};
  }
  if (b < 0xF5) {
    const uint8_t low = b == 0xF0 ? 0x90 : 0x80, high = b == 0xF4 ? 0x8F : 0xBF;
    return {.length = 4, .low = low, .high = high, .bits = b & 0x07u};
  }
  return {.length = 0};
}

}  // namespace

Utf8Char read_utf8(std::string_view text) {
  ROWAN_ASSERT(!text.empty());
  using Status = Utf8Char::Status;
  const Lead lead = lead_of(static_cast<uint8_t>(text[0]));
  if (lead.length == 0) return {};
  char32_t code_point = lead.bits;
  for (int i = 1; i < lead.length; ++i) {
    if (static_cast<size_t>(i) == text.size()) return {.status = Status::kIncomplete, .length = i};
    const uint8_t b = static_cast<uint8_t>(text[static_cast<size_t>(i)]);
    const uint8_t low = i == 1 ? lead.low : 0x80, high = i == 1 ? lead.high : 0xBF;
    if (b < low || b > high) return {.status = Status::kInvalid, .length = i};
    code_point = code_point << 6 | (b & 0x3Fu);
  }
  return {.status = Status::kOk, .code_point = code_point, .length = lead.length};
}

int utf8_length(char32_t code_point) {
  return code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
}

void append_utf8(std::string& out, char32_t c) {
  const int length = utf8_length(c);
  if (length == 1) {
    out += static_cast<char>(c);
    return;
  }
  constexpr uint8_t kMarks[] = {0, 0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kMarks[length] | (c >> (6 * (length - 1))));
  for (int i = length - 2; i >= 0; --i) out += static_cast<char>(0x80u | ((c >> (6 * i)) & 0x3Fu));
}

std::string describe_character(char32_t c) {
  char code[16];
  std::snprintf(code, sizeof code, "U+%04X", static_cast<unsigned>(c));
  // C0 and C1 controls, line and paragraph separators, direction marks, the BOM, noncharacters: nothing to put on a terminal.
  const bool unprintable = c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
                           (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c & 0xFFFE) == 0xFFFE;
  if (unprintable) return code;
  std::string out = "'";
  append_utf8(out, c);
  return out + "' (" + code + ")";
}

}  // namespace rowan
