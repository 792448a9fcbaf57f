// rowan: the command line. This file knows no command; it collects those that registered themselves (tools/command.h), runs the
// one that was asked for, and is the only place that prints errors and chooses exit codes:
//   0 done   1 failed (data, file, device)   2 wrong usage or config   3 stopped because the loss was not finite
//   130, 143 after SIGINT, SIGTERM, with a checkpoint saved first
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "tools/command.h"
#include "tools/usage_error.h"
#include "train/config_document.h"
#include "train/versions.h"

namespace {

using rowan::Error;
using rowan::ErrorKind;
using rowan::escape_controls;

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return 2;
    case ErrorKind::kData:
      return 1;
    case ErrorKind::kNonFinite:
      return 3;
  }
  return 1;
}

// Everything printed so far comes before the error, also where both go to the same file. Nothing can be done about a stderr that
// does not take the message: the exit code still tells. A name or an argument in a message may hold control characters, which
// would split the one line that an error has, or rewrite the terminal.
int report(const std::string& message, const std::string& hint, int code) {
  std::cout.flush();
  std::fflush(stdout);
  std::string text = "rowan: error: " + escape_controls(message) + "\n";
  if (!hint.empty()) text += "hint: " + escape_controls(hint) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
  return code;
}

int report(const Error& error) {
  return report(error.what(), error.hint(), exit_code(error.kind()));
}

// A file opened while 0, 1 or 2 is closed would get that number, and a checkpoint would receive what is meant for the terminal.
// What is written to a closed stdout fails (the stand-in is open for reading only) and is reported as a failed write.
void occupy_closed_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    if (open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY) == -1) return;  // no /dev/null: as it was
  }
}

// The last bytes are often still in a buffer: a full disk shows only now.
void flush_stdout() {
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  const int reason = errno;
  if (flushed && !std::ferror(stdout) && std::cout) return;
  const std::string why = reason != 0 ? std::string(": ") + std::strerror(reason) : "";
  throw Error("[stdout] the output could not be written" + why, ErrorKind::kData);
}

void print_version() {
  std::cout << "rowan " << rowan::rowan_version() << " (" << rowan::real_type() << ")\n";
  for (const rowan::LibraryVersion& library : rowan::library_versions())
    std::cout << library.name << " " << library.version << "\n";
}

// The arguments without the program's name, last one first, as CLI11 takes them. `--prompt=` becomes `--prompt` and an empty
// value: CLI11 would take the following argument as the value.
std::vector<std::string> arguments(int argc, char** argv) {
  std::vector<std::string> out;
  bool options_end = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    options_end = options_end || argument == "--";
    const bool empty_value = !options_end && argument.rfind("--", 0) == 0 && argument.find('=') == argument.size() - 1;
    out.push_back(empty_value ? argument.substr(0, argument.size() - 1) : argument);
    if (empty_value) out.emplace_back();
  }
  std::reverse(out.begin(), out.end());
  return out;
}

// CLI11 turns an integer that is too large into the largest there is, without a word.
std::string integer_problem(const std::string& given) {
  errno = 0;
  std::strtoll(given.c_str(), nullptr, 10);
  return errno == ERANGE ? "a number that fits 64 bits was expected, got '" + given + "'" : "";
}

// Not a number and infinity pass every comparison with a limit that an option may have.
std::string real_problem(const std::string& given) {
  return std::isfinite(std::strtod(given.c_str(), nullptr)) ? "" : "a finite number was expected, got '" + given + "'";
}

// An empty name, as of a shell variable that is not set, is no wish for the default.
std::string name_problem(const std::string& given) {
  return given.empty() ? "a name was expected, and an empty one came" : "";
}

void check_values(CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (option.nonpositional() && (type == "DIR" || type == "FILE")) option.check(name_problem);
  if (type.starts_with("INT")) option.check(integer_problem);
  if (type.starts_with("FLOAT")) option.check(real_problem);
}

// An option takes exactly one value each time it is named. CLI11 lets an option that may be repeated swallow the arguments that
// follow, and takes a value in brackets apart.
void make_options_strict(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->nonpositional()) option->allow_extra_args(false);
    check_values(*option);
  }
  for (CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) make_options_strict(*sub);
}

// Returns the exit code; throws what a command throws.
int run(int argc, char** argv) {
  CLI::App app("Rowan trains small GPTs on CPUs, and updates only the embedding rows that a batch touched.", "rowan");
  bool version = false;
  app.add_flag("--version", version, "Print the versions of rowan and of the libraries it is linked with");
  app.require_subcommand(0, 1);  // at most one; that there is one is checked below, after --version
  for (const auto& entry : rowan::tools::command_registry()) entry.second(app);
  make_options_strict(app);
  try {
    app.parse(arguments(argc, argv));
  } catch (const CLI::Success& wanted) {  // --help
    app.exit(wanted, std::cout, std::cerr);
    return 0;
  } catch (const CLI::ParseError& error) {
    throw rowan::tools::usage_error(app, error);
  } catch (const rowan::tools::ExitStatus& status) {
    return status.code;
  }
  if (version) {
    print_version();
  } else if (app.get_subcommands().empty()) {
    throw rowan::tools::missing_command(app);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is then an error (EFBIG), as a full device is
  try {
    const int code = run(argc, argv);
    flush_stdout();
    return code;
  } catch (const Error& error) {
    return report(error);
  } catch (const std::bad_alloc&) {
    return report("[memory] the system has no memory left for what was asked", "'rowan plan' says how much a run needs", 1);
  } catch (const std::system_error& error) {
    // fmt throws one without a place when a print fails; the only files that it prints to are the standard ones.
    return report((std::ferror(stdout) ? "[stdout] the output could not be written: " + error.code().message() : error.what()), "",
                  1);
  } catch (const std::exception& error) {
    return report(error.what(), "", 1);
  }
}
