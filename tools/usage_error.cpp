#include "tools/usage_error.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/nearest.h"

namespace rowan::tools {
namespace {

// The innermost command that was recognized, and its full name: "rowan config explain".
struct Place {
  const CLI::App* command;
  std::string name;
};

Place innermost_command(const CLI::App& app) {
  Place place{&app, app.get_name()};
  for (auto chosen = app.get_subcommands(); !chosen.empty(); chosen = place.command->get_subcommands()) {
    place.command = chosen.front();
    place.name += " " + place.command->get_name();
  }
  return place;
}

std::vector<std::string> subcommand_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string join_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

std::string help_hint(const Place& place) {
  return "see '" + place.name + " --help'";
}

Error unknown_subcommand(const Place& place, const std::string& given) {
  const std::vector<std::string> names = subcommand_names(*place.command);
  const std::string near = nearest_name(given, names);
  return Error("[" + place.name + "] there is no command '" + given + "'; commands: " + join_names(names), ErrorKind::kUsage,
               near.empty() ? help_hint(place) : "did you mean '" + place.name + " " + near + "'?");
}

Error unknown_option(const Place& place, const std::string& given) {
  const std::string name = given.substr(0, given.find('='));
  // One letter is as near to every other.
  const std::string near = name.size() > 2 ? nearest_name(name, option_names(*place.command)) : "";
  return Error("[" + place.name + "] there is no option '" + name + "'", ErrorKind::kUsage,
               near.empty() ? help_hint(place) : "did you mean '" + near + "'?");
}

bool looks_like_option(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-';
}

// An argument that nothing took is the likeliest cause, also of the complaint that something else is missing.
Error leftover_argument(const Place& place, const std::vector<std::string>& rest) {
  const auto option = std::find_if(rest.begin(), rest.end(), looks_like_option);
  if (option != rest.end()) return unknown_option(place, *option);
  const bool takes_commands = place.command->get_parent() == nullptr || !subcommand_names(*place.command).empty();
  if (takes_commands) return unknown_subcommand(place, rest.front());
  return Error("[" + place.name + "] unexpected argument '" + rest.front() + "'", ErrorKind::kUsage, help_hint(place));
}

// "Could not convert: --tokens = abc" says neither what was expected nor that it is the command line that is wrong.
std::string wrong_value(const Place& place, const std::string& message) {
  const std::string start = "Could not convert: ", separator = " = ";
  const size_t equals = message.find(separator);
  if (message.rfind(start, 0) != 0 || equals == std::string::npos) return message;
  const std::string name = message.substr(start.size(), equals - start.size());
  const CLI::Option* option = place.command->get_option_no_throw(name);
  const std::string type = option == nullptr ? "" : option->get_type_name();
  return name + " expects " + (type.empty() ? "another value" : type) + ", got '" + message.substr(equals + separator.size()) + "'";
}

// "1000" of "1000.000000": how CLI11 writes the limits of a range of reals.
std::string without_trailing_zeros(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

// "--tokens: Value -1 not in range 0.000000 to 1797693...": the largest double is no limit.
std::string out_of_range(const std::string& message) {
  const std::string name_end = ": Value ", value_end = " not in range ", low_end = " to ";
  const size_t value = message.find(name_end), range = message.find(value_end), high = message.rfind(low_end);
  if (value == std::string::npos || range == std::string::npos || high == std::string::npos || high < range) return message;
  const size_t value_begin = value + name_end.size(), low_begin = range + value_end.size();
  const std::string low = without_trailing_zeros(message.substr(low_begin, high - low_begin));
  const std::string top = without_trailing_zeros(message.substr(high + low_end.size()));
  constexpr size_t kNoLimit = 20;  // digits
  const std::string limits = top.size() > kNoLimit ? "of at least " + low : "from " + low + " to " + top;
  return message.substr(0, value) + " expects a number " + limits + ", got '" + message.substr(value_begin, range - value_begin) +
         "'";
}

// What CLI11 says, with its wording replaced where a user would not understand it.
std::string describe(const Place& place, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) return wrong_value(place, error.what());
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) return out_of_range(error.what());
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return error.what();
  const std::string message = error.what();  // "--tokens: 1 required INT missing"
  const size_t colon = message.find(": ");
  const bool missing = message.find("required") != std::string::npos && message.find("missing") != std::string::npos;
  return missing && colon != std::string::npos ? message.substr(0, colon) + " expects a value, and none came" : message;
}

}  // namespace

Error missing_command(const CLI::App& app) {
  const Place place = innermost_command(app);
  return Error("[" + place.name + "] expected a command; commands: " + join_names(subcommand_names(*place.command)),
               ErrorKind::kUsage, help_hint(place));
}

Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const Place place = innermost_command(app);
  std::vector<std::string> rest = place.command->remaining();
  rest.erase(std::remove(rest.begin(), rest.end(), "--"), rest.end());
  if (!rest.empty()) return leftover_argument(place, rest);
  const bool incomplete = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (incomplete && !subcommand_names(*place.command).empty()) return missing_command(app);
  return Error("[" + place.name + "] " + describe(place, error), ErrorKind::kUsage, help_hint(place));
}

}  // namespace rowan::tools
