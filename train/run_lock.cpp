#include "train/run_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <limits>
#include <optional>
#include <sstream>
#include <thread>

namespace rowan {
namespace {

constexpr int kRounds = 50;  // of losing to others who come and go
constexpr int kDeepest = 8;  // dead takers of dead takers' locks
constexpr int64_t kLargestLock = 4096;

// The files of /proc have no size: read to the end.
std::string read_proc(const std::string& path) {
  std::string text;
  FileSystem& files = system_files();
  const int fd = files.open(path, 0, 0);
  if (fd == -1) return text;
  std::array<char, 4096> piece;
  ssize_t got = 0;
  while (text.size() < 65536 && (got = files.pread(fd, piece.data(), piece.size(), static_cast<int64_t>(text.size()))) > 0) {
    text.append(piece.data(), static_cast<size_t>(got));
  }
  files.close(fd);
  return text;
}

int64_t to_number(const std::string& text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct ProcessStatus {
  char state = 0;     // 0: not known
  int64_t start = 0;  // clock ticks since boot
};
ProcessStatus process_status(int64_t pid) {  // proc(5), /proc/<pid>/stat; the name in parentheses may hold anything
  const std::string text = read_proc(join_text("/proc/", pid, "/stat"));
  const size_t end = text.rfind(')');
  ProcessStatus status;
  if (end == std::string::npos) return status;
  std::istringstream fields(text.substr(end + 1));
  std::string field;
  for (int n = 3; fields >> field; ++n) {
    if (n == 3) status.state = field[0];
    if (n == 22) status.start = to_number(field);
  }
  return status;
}

std::string encode(const LockOwner& owner) {
  return join_text("pid ", owner.pid, "\nhost ", owner.host, "\nboot ", owner.boot, "\nstart ", owner.start, "\n");
}

std::optional<LockOwner> parse(const std::string& text) {
  LockOwner owner;
  std::istringstream lines(text);
  int found = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) return std::nullopt;
    const std::string key = line.substr(0, space), value = line.substr(space + 1);
    if (key == "pid") owner.pid = to_number(value), ++found;
    if (key == "host") owner.host = value, ++found;
    if (key == "boot") owner.boot = value, ++found;
    if (key == "start") owner.start = to_number(value), ++found;
  }
  if (found != 4 || owner.pid <= 0 || owner.pid > std::numeric_limits<pid_t>::max()) return std::nullopt;
  return owner;
}

struct Claim {
  std::string text;
  std::optional<LockOwner> owner;
  bool flocked = false;  // somebody holds flock on it
};

std::optional<Claim> read_claim(const std::string& path, FileSystem& files) {  // nothing: there is no lock
  try {
    const File file = File::open(path, files);
    Claim claim;
    claim.text.resize(static_cast<size_t>(std::min(file.size(), kLargestLock)));
    file.read(0, claim.text.data(), claim.text.size());
    claim.owner = parse(claim.text);
    if (claim.owner && !claim.owner->alive()) claim.flocked = files.lock(file.descriptor()) != 0 && errno == EWOULDBLOCK;
    return claim;
  } catch (const FileError& e) {
    if (e.code() == ENOENT) return std::nullopt;
    throw;
  }
}

File lock_file(const std::string& path, FileSystem& files) {
  File file = File::append(path, files);  // open to write: over NFS flock asks for that
  files.lock(file.descriptor());          // an addition: where it is not supported the file alone is the lock
  return file;
}

[[noreturn]] void fail_in_use(const std::string& path, const Claim& claim) {
  const std::string directory = parent_directory(path);
  if (!claim.owner) {
    throw Error("[run] '" + directory + "' has a lock that can't be read: '" + path + "'", ErrorKind::kData,
                "if no run writes there, remove that file");
  }
  const LockOwner& owner = *claim.owner;
  const bool here = owner.host == LockOwner::self().host;
  throw Error(join_text("[run] '", directory, "' is in use by process ", owner.pid, " on host ", owner.host), ErrorKind::kData,
              here ? "wait for it to end, or choose another directory with --out"
                   : "whether it still runs can't be seen from here; if it does not, remove '" + path + "'");
}

}  // namespace

LockOwner LockOwner::self() {
  LockOwner owner;
  owner.pid = getpid();
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  owner.host = host.data();
  owner.boot = read_proc("/proc/sys/kernel/random/boot_id");
  while (!owner.boot.empty() && owner.boot.back() == '\n') owner.boot.pop_back();
  owner.start = process_status(owner.pid).start;
  return owner;
}

bool LockOwner::alive() const {
  const LockOwner here = self();
  if (host != here.host) return true;
  if (!boot.empty() && !here.boot.empty() && boot != here.boot) return false;
  if (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return false;
  const ProcessStatus status = process_status(pid);
  if (status.state == 'Z' || status.state == 'X') return false;
  return start == 0 || status.start == 0 || start == status.start;  // another start time: the number went to a new process
}

RunLock RunLock::acquire(const std::string& directory, FileSystem& files) {
  return acquire_path(join_path(directory, kFileName), 0, files);
}

// A dead owner's lock may be removed by one process only, or a slow second remover could hit the lock of the first. That process
// holds a lock named after the dead owner; should it die, the same way takes that lock over.
RunLock RunLock::acquire_path(const std::string& path, int depth, FileSystem& files) {
  for (int round = 0;; ++round) {
    if (try_create(path, files)) return hold(path, files);
    const std::optional<Claim> claim = read_claim(path, files);
    if (round == kRounds || depth == kDeepest) {
      if (!claim) fail_file("lock", path, EAGAIN);
      fail_in_use(path, *claim);
    }
    if (!claim) continue;  // given back meanwhile
    if (!claim->owner) {   // its maker could not make it appear whole; give it time
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    if (claim->flocked || claim->owner->alive()) fail_in_use(path, *claim);
    const std::string successor = join_text(path, ".after-", claim->owner->pid, "-", claim->owner->start);
    const RunLock right_to_remove = acquire_path(successor, depth + 1, files);
    const std::optional<Claim> now = read_claim(path, files);
    if (now && now->text == claim->text) remove_file(path, files);
    if (try_create(path, files)) return hold(path, files);
  }
}

bool RunLock::try_create(const std::string& path, FileSystem& files) {
  const std::string text = encode(LockOwner::self());
  try {
    publish_text(path, text, IfExists::kRefuse, files);
    return true;
  } catch (const FileError& e) {
    // ENOENT: the owner, who removes temporary files, came first.
    if (e.code() == EEXIST || (e.code() == ENOENT && directory_exists(parent_directory(path), files))) return false;
    if (e.code() != EPERM && e.code() != EOPNOTSUPP && e.code() != ENOSYS) throw;
  }
  try {  // neither renames without replacing nor links here
    File file = File::create(path, files);
    file.write(0, text.data(), text.size());
    return true;
  } catch (const FileError& e) {
    if (e.code() == EEXIST) return false;
    throw;
  }
}

RunLock RunLock::hold(const std::string& path, FileSystem& files) {
  return RunLock(std::unique_ptr<Held>(new Held{path, LockOwner::self(), lock_file(path, files), &files}));
}

// The file that is held and the one of that name are the same: nobody can have made another with its number meanwhile.
bool RunLock::stands() const {
  struct stat held {
  }, named{};
  const int fd = again([&] { return held_->files->open(held_->path, O_RDONLY | O_NOFOLLOW, 0); });
  if (fd == -1) return false;
  const bool known = again([&] { return held_->files->status(fd, named); }) == 0 &&
                     again([&] { return held_->files->status(held_->flocked.descriptor(), held); }) == 0;
  held_->files->close(fd);
  return known && held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

void RunLock::check() {
  const std::lock_guard guard(held_->mutex);
  if (stands()) return;
  const std::optional<Claim> claim = read_claim(held_->path, *held_->files);
  if (claim && claim->owner == held_->owner) return;
  if (!claim && directory_exists(parent_directory(held_->path), *held_->files) && try_create(held_->path, *held_->files)) {
    held_->flocked = lock_file(held_->path, *held_->files);
    return;
  }
  const std::string who = claim && claim->owner
                              ? join_text("belongs to process ", claim->owner->pid, " on host ", claim->owner->host)
                              : "is gone or can't be read";
  throw LockLost(join_text("[run] '", parent_directory(held_->path), "' is no longer this run's: '", held_->path, "' ", who),
                 ErrorKind::kData, "it was moved, removed or unlocked while this run wrote there; this run has stopped writing");
}

void RunLock::remove_leftovers() {
  const std::string folder = parent_directory(held_->path);
  for (const std::string& name : list_directory(folder, *held_->files)) {
    if (!name.starts_with(std::string(kFileName) + ".after-")) continue;
    const std::string path = join_path(folder, name);
    const std::optional<Claim> claim = read_claim(path, *held_->files);
    if (!claim || !claim->owner || claim->flocked || claim->owner->alive()) continue;
    try {
      acquire_path(path, 1, *held_->files);  // and gives it back
    } catch (const Error&) {
      // Another process is about to do the same.
    }
  }
}

RunLock::Held::~Held() {
  if (getpid() != owner.pid) return;
  try {
    const std::optional<Claim> claim = read_claim(path, *files);
    if (claim && claim->owner == owner) again([&] { return files->unlink(path); });
  } catch (const Error&) {
    // Unreadable now: it stays, and the next start finds its owner dead.
  }
}

}  // namespace rowan
