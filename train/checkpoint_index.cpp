// The text of /digest/index, both ways.
#include <algorithm>
#include <charconv>

#include "train/checkpoint_format.h"

namespace rowan {
namespace {

constexpr std::string_view kFirstLine = "rowan-index 1";
constexpr size_t kMostDims = 8;

bool is_digest(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

class IndexParser {
 public:
  IndexParser(std::string_view text, int64_t file_bytes, const std::string& path)
      : rest_(text), file_bytes_(file_bytes), path_(path) {}

  CheckpointIndex parse() {
    CheckpointIndex index;
    if (next_line() != kFirstLine) fail("does not begin with '", kFirstLine, "'");
    index.info.created = value_of("created");
    index.info.rowan_version = value_of("rowan_version");
    const std::string complete = value_of("complete");
    if (complete != "0" && complete != "1") fail("'complete' is neither 0 nor 1");
    index.info.complete = complete == "1";
    index.state_digest = value_of("state");
    while (!rest_.empty()) {
      index.arrays.push_back(array_line(next_line()));
      if (index.arrays.size() > 1 && !(index.arrays[index.arrays.size() - 2].path < index.arrays.back().path)) {
        fail("is not sorted by path at ", index.arrays.back().path);
      }
    }
    check_overlap(index.arrays);
    if (index.state_digest != state_digest_of(index.arrays)) fail("has a state digest that is not that of its lines");
    return index;
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    fail_data("[checkpoint] the index of '", path_, "', line ", line_, ", ", parts...);
  }

  std::string_view next_line() {
    ++line_;
    const size_t end = rest_.find('\n');
    if (end == std::string_view::npos) fail("does not end");
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }

  std::string value_of(std::string_view key) {
    std::string_view line = next_line();
    if (word(line) != key) fail("does not begin with '", key, "'");
    if (line.size() > 200) fail("is too long");
    return std::string(line);
  }

  static std::string_view word(std::string_view& line) {  // takes the first word and the space after it off the line
    const size_t end = std::min(line.find(' '), line.size());
    const std::string_view first = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    return first;
  }

  int64_t number(std::string_view text) const {
    int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0) fail("has '", text, "' where a number belongs");
    return value;
  }

  DType dtype(std::string_view text) const {
    for (const DType d : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64, DType::kUint8, DType::kText}) {
      if (text == dtype_name(d)) return d;
    }
    fail("names the unknown type '", text, "'");
  }

  std::vector<int64_t> dims(std::string_view text) const {
    std::vector<int64_t> out;
    if (text == "scalar") return out;
    if (text.size() < 3 || text.front() != '(' || text.back() != ')') fail("has '", text, "' where a shape belongs");
    text = text.substr(1, text.size() - 2);
    while (true) {
      const size_t end = std::min(text.find(','), text.size());
      out.push_back(number(text.substr(0, end)));
      if (out.size() > kMostDims) fail("has more than ", kMostDims, " dimensions");
      if (end == text.size()) return out;
      text.remove_prefix(end + 1);
    }
  }

  ArrayInfo array_line(std::string_view line) const {
    ArrayInfo a;
    a.checksum = word(line);
    a.offset = number(word(line));
    a.bytes = number(word(line));
    a.dtype = dtype(word(line));
    a.dims = dims(word(line));
    a.path = line;
    if (!is_digest(a.checksum)) fail("has no checksum");
    if (!valid_array_path(a.path)) fail("names a path that can't be in a checkpoint");
    int64_t expected = dtype_bytes(a.dtype);
    for (const int64_t d : a.dims) {
      if (__builtin_mul_overflow(expected, d, &expected)) fail("gives a shape too large");
    }
    if (a.dtype == DType::kText && a.dims.size() != 1) fail("gives text a shape");
    if (a.bytes != expected) fail("gives ", a.bytes, " bytes to ", a.shape_text(), " of ", dtype_name(a.dtype));
    const auto start = static_cast<int64_t>(CheckpointHeader::kBytes);
    if (a.bytes > 0 && (a.offset < start || a.bytes > file_bytes_ || a.offset > file_bytes_ - a.bytes)) {
      fail("points outside the file");
    }
    return a;
  }

  void check_overlap(const std::vector<ArrayInfo>& arrays) const {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (const ArrayInfo& a : arrays) {
      if (a.bytes > 0) ranges.emplace_back(a.offset, a.offset + a.bytes);
    }
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i) {
      if (ranges[i].first < ranges[i - 1].second) fail("lets two arrays share the bytes at ", ranges[i].first);
    }
  }

  std::string_view rest_;
  int64_t file_bytes_;
  const std::string& path_;
  int line_ = 0;
};

}  // namespace

std::string encode_index(const CheckpointIndex& index) {
  std::string text = join_text(kFirstLine, "\ncreated ", index.info.created, "\nrowan_version ", index.info.rowan_version,
                               "\ncomplete ", index.info.complete ? 1 : 0, "\nstate ", index.state_digest, "\n");
  for (const ArrayInfo& a : index.arrays) {
    text += join_text(a.checksum, " ", a.offset, " ", a.bytes, " ", dtype_name(a.dtype), " ", a.shape_text(), " ", a.path, "\n");
  }
  return text;
}

CheckpointIndex parse_index(std::string_view text, int64_t file_bytes, const std::string& path) {
  return IndexParser(text, file_bytes, path).parse();
}

std::string state_digest_of(const std::vector<ArrayInfo>& arrays) {
  Digester digester;
  for (const ArrayInfo& a : arrays) {
    const bool state = a.path == "/train/step" || a.path.starts_with("/model/") || a.path.starts_with("/optim/") ||
                       a.path.starts_with("/rng/") || a.path.starts_with("/loader/") || a.path.starts_with("/train/guard/");
    if (state) digester.update(a.checksum + " " + dtype_name(a.dtype) + " " + a.shape_text() + " " + a.path + "\n");
  }
  return digester.text();
}

}  // namespace rowan
