#include "train/metrics_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "train/json_text.h"

namespace rowan {
namespace {

// What is longer is no line of this log, but what a device made of it (after a power failure a file may end in zeros): it is not
// taken into memory.
constexpr size_t kLongestLine = size_t{16} << 20;
constexpr int64_t kLongestGap = int64_t{256} << 20;

// Calls take(line, end) for each whole line, `end` being the length of the file up to and with it. Of a line that is longer than
// any may be, only as much is kept in memory as shows it; what is longer than a gap may be is not read to its end.
template <class Take>
void scan_lines(const File& file, Take&& take) {
  const int64_t size = file.size();
  std::string line;
  std::string piece;
  int64_t unended = 0;
  for (int64_t at = 0; at < size; at += static_cast<int64_t>(piece.size())) {
    piece.resize(static_cast<size_t>(std::min<int64_t>(size - at, 1 << 20)));
    file.read(at, piece.data(), piece.size());
    size_t begin = 0;
    for (size_t end; (end = piece.find('\n', begin)) != std::string::npos; begin = end + 1) {
      line.append(piece, begin, end - begin);
      take(std::string_view(line), at + static_cast<int64_t>(end) + 1);
      line.clear();
    }
    if (line.size() <= kLongestLine) line.append(piece, begin);
    unended = begin == 0 ? unended + static_cast<int64_t>(piece.size()) : 0;
    if (unended > kLongestGap) return;
  }
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path, FileSystem& files) : file_(File::append(path, files)) {
  scan_lines(file_, [this](std::string_view, int64_t end) { size_ = end; });
}

void MetricsLog::append(std::string_view line) {
  ROWAN_ASSERT(line.find('\n') == std::string_view::npos);
  if (file_.size() != size_) file_.truncate(size_);  // a line that did not fit, or the half line of a killed process
  file_.write_end(std::string(line) + "\n");
  size_ += static_cast<int64_t>(line.size()) + 1;
}

void MetricsLog::sync() {
  file_.sync();
}

std::string MetricsLog::rewind(int64_t step) {
  int64_t number = 0, foreign = 0, first_foreign = 0;  // lines that the log did not write
  bool cut = false;
  size_ = 0;
  evaluated_ = false;
  scan_lines(file_, [&](std::string_view line, int64_t end) {
    ++number;
    const auto event = line.size() <= kLongestLine ? parse_event<nlohmann::json>(line) : nlohmann::json();
    if (event.is_null() && foreign++ == 0) first_foreign = number;
    const int64_t at = event.is_null() ? step : event.value("step", step);
    cut = cut || at > step;
    if (cut) return;
    size_ = end;
    evaluated_ = evaluated_ || (!event.is_null() && event["event"] == "eval" && event.contains("step") && at == step);
  });
  if (file_.size() != size_) file_.truncate(size_);
  if (foreign == 0) return "";
  return join_text("'", file_.path(), "' has ", foreign, foreign == 1 ? " line" : " lines",
                   " that no log has, the first of them line ", first_foreign, ": the file was damaged or edited");
}

}  // namespace rowan
