// Progress: what a person sees of a run. On a terminal one live line, rewritten in place; in a pipe, a plain line now and then.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace rowan {

struct ProgressLine {
  int64_t step = 0, steps = 0;
  double loss = 0, lr = 0;
  double tokens_per_s = 0;
  double share_of_gemm = 0;  // achieved FLOP/s over the measured matrix-multiply rate; 0: not measured
  double seconds_left = 0;
};

std::string format_progress(const ProgressLine& line);
std::string format_duration(double seconds);  // "42 s", "3 min 10 s", "2 h 05 min"

class Progress {
 public:
  // out: where to write; quiet: nothing at all.
  Progress(std::FILE* out, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool live() const { return live_; }
  bool due(double now_seconds) const;  // a live line ten times a second, a plain one every two seconds
  void show(const ProgressLine& line, double now_seconds);
  // A line of its own, control characters in it escaped; the live line comes back below it.
  void message(const std::string& text);

 private:
  void clear_line();
  std::FILE* out_;
  bool quiet_, live_;
  bool line_shown_ = false;
  double last_ = -1e9;
};

}  // namespace rowan
