#include "train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "train/config_document.h"

namespace rowan {
namespace {

constexpr double kLiveInterval = 0.1, kPlainInterval = 2;

size_t terminal_width(std::FILE* out) {
  winsize size = {};
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool can_rewrite_lines(std::FILE* out) {
  const char* term = std::getenv("TERM");
  return isatty(fileno(out)) == 1 && term != nullptr && std::string(term) != "dumb";
}

}  // namespace

std::string format_duration(double seconds) {
  const auto s = static_cast<int64_t>(seconds + 0.5);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s % 3600 / 60);
}

std::string format_progress(const ProgressLine& l) {
  std::string text =
      fmt::format("step {}/{}  loss {:.4f}  lr {:.2e}  {:.0f} tokens/s", l.step, l.steps, l.loss, l.lr, l.tokens_per_s);
  if (l.share_of_gemm > 0) text += fmt::format("  {:.0f} % of gemm", 100 * l.share_of_gemm);
  return text + "  " + format_duration(l.seconds_left) + " left";
}

Progress::Progress(std::FILE* out, bool quiet) : out_(out), quiet_(quiet), live_(!quiet && can_rewrite_lines(out)) {}

Progress::~Progress() {
  if (line_shown_) std::fputc('\n', out_);  // the last live line stays readable above the prompt
}

bool Progress::due(double now) const {
  return !quiet_ && now - last_ >= (live_ ? kLiveInterval : kPlainInterval);
}

void Progress::clear_line() {
  if (line_shown_) std::fputs("\r\x1b[K", out_);
  line_shown_ = false;
}

void Progress::show(const ProgressLine& line, double now) {
  if (quiet_) return;
  last_ = now;
  std::string text = format_progress(line);
  if (!live_) {
    fmt::print(out_, "{}\n", text);
  } else {
    const size_t width = terminal_width(out_);
    if (text.size() >= width) text.resize(width - 1);  // a wrapped line could not be rewritten
    clear_line();
    std::fputs(text.c_str(), out_);
    line_shown_ = true;
  }
  std::fflush(out_);
}

void Progress::message(const std::string& text) {
  if (quiet_) return;
  clear_line();
  fmt::print(out_, "{}\n", escape_controls(text));
  std::fflush(out_);
}

}  // namespace rowan
