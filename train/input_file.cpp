#include "train/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "train/utf8.h"

namespace rowan {
namespace {

std::string reason(int code) {
  return std::generic_category().message(code);
}

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

InputFile::InputFile(const std::string& path) : path_(path) {
  // Non-blocking, so that opening a pipe nobody writes to does not wait for ever; it has no effect on regular files.
  do fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) fail_data("[file] cannot open '", path, "': ", reason(errno));
  struct stat info {};
  const int failed = ::fstat(fd_, &info) != 0 ? errno : 0;
  if (failed == 0 && S_ISREG(info.st_mode)) {
    size_ = info.st_size;
    return;
  }
  ::close(fd_);
  if (failed) fail_data("[file] cannot read '", path, "': ", reason(failed));
  fail_data("[file] expected a file, but '", path, "' is a ",
            S_ISDIR(info.st_mode)    ? "directory"
            : S_ISFIFO(info.st_mode) ? "pipe, and it has to be read twice"
                                     : "device or socket");
}

InputFile::~InputFile() {
  ::close(fd_);
}

size_t InputFile::read_some(int64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(fd_, out.data() + done, out.size() - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_data("[file] reading '", path_, "' failed at byte ", offset + static_cast<int64_t>(done), ": ", reason(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

void InputFile::read(int64_t offset, std::span<std::byte> out) const {
  const size_t n = read_some(offset, out);
  if (n < out.size())
    fail_data("[file] '", path_, "' ends at byte ", offset + static_cast<int64_t>(n), ", but ", size_,
              " bytes were there when it was opened: it was cut short while in use");
}

int64_t read_pieces(const std::string& path, const std::function<void(std::string_view, int64_t)>& take) {
  constexpr size_t kPiece = 1 << 20;
  const InputFile file(path);
  std::vector<char> buffer(kPiece);
  size_t held = 0;  // bytes of an incomplete character, at the front of the buffer
  for (int64_t offset = 0;;) {
    const size_t n = file.read_some(offset, std::as_writable_bytes(std::span(buffer).subspan(held)));
    const std::string_view all(buffer.data(), held + n);
    const int64_t begin = offset - static_cast<int64_t>(held);
    offset += static_cast<int64_t>(n);
    if (n == 0) {
      if (held > 0) take(all, begin);
      return offset;
    }
    const size_t tail = incomplete_tail(all);
    if (all.size() > tail) take(all.substr(0, all.size() - tail), begin);
    std::memmove(buffer.data(), all.data() + all.size() - tail, tail);
    held = tail;
  }
}

std::string read_small_file(const std::string& path, int64_t max_bytes) {
  const InputFile file(path);
  if (file.size() > max_bytes) fail_data("[file] '", path, "' has ", file.size(), " bytes; expected at most ", max_bytes);
  std::string out(static_cast<size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(out)));
  return out;
}

}  // namespace rowan
