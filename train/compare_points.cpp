#include "train/compare_points.h"

#include <fmt/format.h>

#include <string_view>

#include "train/config_reader.h"

namespace rowan {
namespace {

using Kind = ConfigNode::Kind;

// A text that may be part of a directory's name: what may not, and the signs that labels are made with, as in an address, %2F.
std::string name_text(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool plain =
        static_cast<unsigned char>(c) > 0x20 && c != 0x7f && std::string_view("/\\\"%+,=").find(c) == std::string::npos;
    name += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return name;
}

// A value without the quotes and brackets of TOML; of values that differ, as far as a field takes them, texts that differ.
std::string label_text(const ConfigNode& node) {
  if (node.kind == Kind::kString) return name_text(node.text);
  if (node.kind != Kind::kArray) return toml_text(node);
  std::string list;
  for (const ConfigNode& item : node.items) {
    if (!list.empty()) list += '+';
    list += label_text(item);
  }
  return list;
}

std::string point_label(const SweepPoint& point) {
  std::string label;
  for (const SweepSetting& s : point.settings)
    label += (label.empty() ? "" : ",") + s.key + "=" + label_text(parse_toml_value(s.value, s.key));
  return label;
}

}  // namespace

std::vector<SweepPoint> all_points(const std::vector<SweepAxis>& axes) {
  std::vector<SweepPoint> points = {{}};
  for (const SweepAxis& axis : axes) {
    std::vector<SweepPoint> more;
    for (const SweepPoint& point : points) {
      for (size_t i = 0; i < axis.values.size(); ++i) {
        more.push_back(point);
        more.back().at.push_back(i);
        more.back().settings.push_back({axis.key, axis.values[i], axis.place});
      }
    }
    points = std::move(more);
  }
  for (SweepPoint& point : points) point.label = point_label(point);
  return points;
}

}  // namespace rowan
