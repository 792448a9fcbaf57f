#include "train/metrics_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace rowan {
namespace {

// What is longer is no line of this log, but what a device made of it (after a power failure a file may end in zeros): it is not
// taken into memory.
constexpr size_t kLongestLine = size_t{16} << 20;

std::optional<int64_t> step_of(std::string_view line) {
  const auto event = nlohmann::json::parse(line, nullptr, false);
  if (!event.is_object()) return std::nullopt;
  const auto step = event.find("step");
  if (step == event.end() || !step->is_number_integer()) return std::nullopt;
  return step->get<int64_t>();
}

// Calls keep(line) for each whole line until it says no; returns the length of the lines kept.
template <class Keep>
int64_t scan_lines(const File& file, Keep&& keep) {
  const int64_t size = file.size();
  std::string pending;
  std::string piece;
  int64_t kept = 0;
  for (int64_t at = 0; at < size; at += static_cast<int64_t>(piece.size())) {
    piece.resize(static_cast<size_t>(std::min<int64_t>(size - at, 1 << 20)));
    file.read(at, piece.data(), piece.size());
    pending += piece;
    size_t begin = 0;
    for (size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (!keep(std::string_view(pending).substr(begin, end - begin))) return kept;
      kept += static_cast<int64_t>(end + 1 - begin);
    }
    pending.erase(0, begin);
    if (pending.size() > kLongestLine) break;
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path, FileSystem& files) : file_(File::append(path, files)) {
  size_ = scan_lines(file_, [](std::string_view) { return true; });
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

void MetricsLog::rewind(int64_t step) {
  size_ = scan_lines(file_, [&](std::string_view line) { return step_of(line).value_or(step) <= step; });
  if (file_.size() != size_) file_.truncate(size_);
}

}  // namespace rowan
