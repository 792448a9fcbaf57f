#include "optim/settings.h"

#include <charconv>
#include <map>

namespace rowan {
namespace {

std::string number(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

struct Writer final : FieldVisitor {
  Settings out;
  void operator()(const char* name, double& value, const char*, const Limits&) override { out.emplace_back(name, number(value)); }
  void operator()(const char* name, int64_t& value, const char*, const Limits&) override {
    out.emplace_back(name, std::to_string(value));
  }
  void operator()(const char* name, bool& value, const char*) override { out.emplace_back(name, value ? "true" : "false"); }
  void operator()(const char* name, std::string& value, const char*, const Limits&) override { out.emplace_back(name, value); }
  void operator()(const char* name, std::vector<std::string>& value, const char*) override {
    std::string joined;
    for (const std::string& v : value) joined += (joined.empty() ? "" : ",") + v;
    out.emplace_back(name, joined);
  }
};

// With apply = false it only checks, so that a bad text changes nothing.
struct Reader final : FieldVisitor {
  std::map<std::string, std::string> values;
  bool apply = false;
  size_t used = 0;

  const std::string& text_of(const char* name) {
    const auto found = values.find(name);
    if (found == values.end()) fail_data("[optim] saved settings lack '", name, "'");
    ++used;
    return found->second;
  }
  template <class T>
  void read_number(const char* name, T& value, const Limits& limits) {
    const std::string& text = text_of(name);
    T number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      fail_data("[optim] saved setting ", name, " is '", text, "'; expected a number");
    if (!within(static_cast<double>(number), limits))
      fail_data("[optim] saved setting ", name, " is ", text, ", which no setting of this name may be");
    if (apply) value = number;
  }
  void operator()(const char* name, double& value, const char*, const Limits& limits) override { read_number(name, value, limits); }
  void operator()(const char* name, int64_t& value, const char*, const Limits& limits) override {
    read_number(name, value, limits);
  }
  void operator()(const char* name, bool& value, const char*) override {
    const std::string& text = text_of(name);
    if (text != "true" && text != "false") fail_data("[optim] saved setting ", name, " is '", text, "'; expected true or false");
    if (apply) value = text == "true";
  }
  void operator()(const char* name, std::string& value, const char*, const Limits& limits) override {
    const std::string& text = text_of(name);
    bool known = limits.choices.empty();
    for (const std::string& choice : limits.choices) known = known || choice == text;
    if (!known) fail_data("[optim] saved setting ", name, " is '", text, "', which this version does not know");
    if (apply) value = text;
  }
  void operator()(const char* name, std::vector<std::string>& value, const char*) override {
    const std::string& text = text_of(name);
    if (!apply) return;
    value.clear();
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      value.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
};

}  // namespace

Settings settings_of(Optimizer& optimizer) {
  Writer writer;
  optimizer.visit(writer);
  return writer.out;
}

std::string settings_line(const Settings& settings) {
  std::string line;
  for (const auto& [name, value] : settings) line += (line.empty() ? "" : " ") + name + "=" + value;
  return line;
}

std::string write_settings(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) text += name + "=" + value + "\n";
  return text;
}

namespace {

Reader parse_settings(const std::string& text) {
  Reader reader;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const size_t equals = line.find('=');
    if (equals == std::string::npos) fail_data("[optim] saved settings have the line '", line, "'; expected name=value");
    reader.values[line.substr(0, equals)] = line.substr(equals + 1);
    begin = end + 1;
  }
  return reader;
}

void apply(Reader reader, Optimizer& optimizer) {
  reader.apply = true;
  optimizer.visit(reader);
}

}  // namespace

void read_settings(Optimizer& optimizer, const std::string& text) {
  Reader reader = parse_settings(text);
  optimizer.visit(reader);
  if (reader.used != reader.values.size())
    fail_data("[optim] saved settings have ", reader.values.size(), " fields; the rule '", optimizer.rule(), "' has ", reader.used);
  const std::string before = write_settings(settings_of(optimizer));
  apply(reader, optimizer);
  try {
    optimizer.validate();
  } catch (const Error&) {
    apply(parse_settings(before), optimizer);
    throw;
  }
}

}  // namespace rowan
