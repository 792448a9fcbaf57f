#include "train/text_file.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "train/file.h"
#include "train/utf8.h"

namespace rowan {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

// Bytes at the end of `text` that begin a character without completing it: 0 to 3.
size_t incomplete_tail(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const std::string_view tail = text.substr(text.size() - back);
    if ((static_cast<unsigned char>(tail[0]) & 0xC0) == 0x80) continue;  // inside a character: look further back
    const Utf8Char c = read_utf8(tail);
    return c.status == Utf8Char::Status::kIncomplete && static_cast<size_t>(c.length) == back ? back : 0;
  }
  return 0;
}

}  // namespace

int64_t read_pieces(const std::string& path, const std::function<void(std::string_view, int64_t)>& take, FileSystem& files) {
  const File file = File::open(path, files);
  const int64_t size = file.size();
  std::vector<char> buffer(kPiece);
  size_t held = 0;  // bytes of an incomplete character, at the front of the buffer
  for (int64_t offset = 0; offset < size;) {
    const size_t n = std::min(kPiece - held, static_cast<size_t>(size - offset));
    file.read(offset, buffer.data() + held, n);
    const std::string_view all(buffer.data(), held + n);
    const int64_t begin = offset - static_cast<int64_t>(held);
    offset += static_cast<int64_t>(n);
    const size_t tail = offset < size ? incomplete_tail(all) : 0;
    take(all.substr(0, all.size() - tail), begin);
    std::memmove(buffer.data(), all.data() + all.size() - tail, tail);
    held = tail;
  }
  return size;
}

}  // namespace rowan
