// Quotas of containers, from trees of files as the kernel shows them.
#include "core/usable_cores.h"

#include <gtest/gtest.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/parallel.h"
#include "tests/support/temp_dir.h"

namespace rowan {
namespace {

int cores_with(const std::map<std::string, std::string>& files) {
  const test::TempDir dir;
  const std::string root = dir.file("root");
  for (const auto& [path, text] : files) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  return cgroup_cores(root);
}

TEST(CgroupCores, are_without_limit_where_no_quota_is_set) {
  EXPECT_EQ(cores_with({}), INT_MAX);
  EXPECT_EQ(cores_with({{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "max 100000\n"}}), INT_MAX);
  EXPECT_EQ(cores_with({{"/proc/self/cgroup", "3:cpu,cpuacct:/\n"},
                        {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
                        {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}}),
            INT_MAX);
}

TEST(CgroupCores, of_version_2_are_the_least_of_the_group_and_all_above_it) {
  const std::pair<const std::string, std::string> own{"/proc/self/cgroup", "0::/system.slice/job.service\n"};
  const std::string base = "/sys/fs/cgroup/";
  EXPECT_EQ(cores_with({own, {base + "system.slice/job.service/cpu.max", "300000 100000\n"}}), 3);
  EXPECT_EQ(cores_with({own,
                        {base + "system.slice/job.service/cpu.max", "300000 100000\n"},
                        {base + "system.slice/cpu.max", "200000 100000\n"},
                        {base + "cpu.max", "400000 100000\n"}}),
            2);
  EXPECT_EQ(cores_with({own, {base + "other/cpu.max", "100000 100000\n"}}), INT_MAX);
  EXPECT_EQ(cores_with({own, {base + "system.slice/job.service/cpu.max", "50000 100000\n"}}), 1) << "half a core";
}

TEST(CgroupCores, of_a_container_are_those_of_the_top_that_it_sees) {
  EXPECT_EQ(cores_with({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "200000 100000\n"}}), 2);
  EXPECT_EQ(cores_with({{"/proc/self/cgroup", "5:cpu,cpuacct:/docker/0123\n1:name=systemd:/docker/0123\n"},
                        {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n"},
                        {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}}),
            2);
}

TEST(CgroupCores, of_version_1_are_found_by_either_name_of_the_controller) {
  EXPECT_EQ(cores_with({{"/proc/self/cgroup", "4:cpuset:/x\n2:cpuacct,cpu:/a/b\n"},
                        {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "250000\n"},
                        {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "50000\n"}}),
            5);
  EXPECT_EQ(cores_with({{"/proc/self/cgroup", "4:cpuset:/x\n"},
                        {"/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "100000\n"},
                        {"/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"}}),
            INT_MAX)
      << "another controller's group";
}

TEST(CgroupCores, take_what_they_do_not_understand_for_no_limit) {
  for (const char* text : {"", "\n", "much 100000\n", "100000 0\n", "100000\n", "-5 100000\n"})
    EXPECT_EQ(cores_with({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", text}}), INT_MAX) << text;
  EXPECT_EQ(cores_with({{"/proc/self/cgroup", "no colons\n0:\n::\n0::relative\n"}}), INT_MAX);
}

TEST(UsableCores, are_at_least_one_and_no_more_than_the_quota) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), cgroup_cores());
}

}  // namespace
}  // namespace rowan
