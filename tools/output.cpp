#include "tools/output.h"

#include <algorithm>

namespace rowan::tools {

void print_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += escape_controls(text.substr(0, end));
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  fmt::print(stdout, "{}", out);
}

void print_object(const nlohmann::ordered_json& json, int indent) {
  print_text(json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void warn(const std::string& message) {
  fmt::print(stderr, "rowan: warning: {}\n", escape_controls(message));
}

}  // namespace rowan::tools
