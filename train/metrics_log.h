// MetricsLog: metrics.jsonl of a run, one JSON object a line, only ever appended to, except that a resume cuts off what comes after
// the step it resumes from: each step stands in the file once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "train/file.h"

namespace rowan {

class MetricsLog {
 public:
  explicit MetricsLog(const std::string& path, FileSystem& files = system_files());  // made when missing

  // One line, without its newline. When it can't be written whole (a full device) nothing of it stays, and the Error says why.
  void append(std::string_view line);
  void sync();  // before a checkpoint that the lines belong to is published

  // Cuts the file before the first event whose "step" is above `step`, and a last line that a kill left incomplete. Lines that the
  // log can't have written cut nothing; "", or what to say about them.
  std::string rewind(int64_t step);
  bool evaluated() const { return evaluated_; }  // rewind() met an evaluation of its step

 private:
  File file_;
  int64_t size_ = 0;  // of the whole lines
  bool evaluated_ = false;
};

}  // namespace rowan
