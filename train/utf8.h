// UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF (the table of well-formed sequences in the Unicode
// Standard, section 3.9). No normalization: what is read is what stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rowan {

// One character at the front of some text, or why there is none.
struct Utf8Char {
  enum class Status {
    kOk,
    kIncomplete,  // the text ends inside a sequence that is valid so far
    kInvalid,     // no continuation can make it valid
  };
  Status status = Status::kInvalid;
  char32_t code_point = 0;  // kOk only
  // kOk: bytes of the character. Otherwise: bytes of the longest valid beginning, at least 1; a decoder that replaces errors puts
  // one U+FFFD for them.
  int length = 1;
};

Utf8Char read_utf8(std::string_view text);  // text must not be empty

void append_utf8(std::string& out, char32_t code_point);  // a valid code point
int utf8_length(char32_t code_point);

// "'é' (U+00E9)"; control characters and the like by their code point alone: "U+0007".
std::string describe_character(char32_t code_point);

}  // namespace rowan
