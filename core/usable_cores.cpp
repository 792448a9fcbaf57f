#include "core/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdint>
#include <fstream>
#include <set>
#include <thread>

#include "core/parallel.h"

namespace rowan {
namespace {

// Hardware threads of one core count once: two of them share the multiply units.
int physical_cores(const cpu_set_t& set) {
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    std::string siblings;
    if (std::ifstream in(topology + "thread_siblings_list"); !(in >> siblings)) siblings = std::to_string(cpu);
    cores.insert(siblings);
  }
  return static_cast<int>(cores.size());
}

// Microseconds of processor time a period. What is no number ("max", or what a later kernel may say) and -1 set no limit.
int cores_of(const std::string& quota, int64_t period) {
  int64_t allowed = 0;
  if (std::from_chars(quota.data(), quota.data() + quota.size(), allowed).ec != std::errc{} || allowed <= 0 || period <= 0)
    return INT_MAX;
  return static_cast<int>(std::clamp<int64_t>(allowed / period, 1, INT_MAX));
}

int quota_in(const std::string& directory) {
  std::string quota;
  int64_t period = 0;
  if (std::ifstream in(directory + "/cpu.max"); in >> quota >> period) return cores_of(quota, period);
  std::ifstream limit(directory + "/cpu.cfs_quota_us"), length(directory + "/cpu.cfs_period_us");
  return limit >> quota && length >> period ? cores_of(quota, period) : INT_MAX;
}

// Of a group and those above it. In a container the group may have another name inside than outside: then only the top is found,
// which is the container's own.
int least_quota(const std::string& mount, std::string group) {
  for (int least = INT_MAX;;) {
    while (group.ends_with('/')) group.pop_back();
    least = std::min(least, quota_in(mount + group));
    if (group.empty()) return least;
    group.erase(group.rfind('/'));
  }
}

bool names_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

int cgroup_cores(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  int least = INT_MAX;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "<number>:<controllers>:<group>"; version 2 names no controllers
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || second + 1 >= line.size() || line[second + 1] != '/') continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) least = std::min(least, least_quota(mount, group));
    if (!names_cpu(controllers)) continue;
    for (const std::string& name : {controllers, std::string("cpu")})
      least = std::min(least, least_quota(mount + "/" + name, group));
  }
  return least;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return std::max(1, std::min(static_cast<int>(std::thread::hardware_concurrency()), cgroup_cores()));
  return std::max(1, std::min(physical_cores(set), cgroup_cores()));
}

}  // namespace rowan
