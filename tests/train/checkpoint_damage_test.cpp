// Damage: no changed byte, no truncation and no hostile index gets past Checkpoint::open(), and nothing crashes on one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>

#include "core/rng.h"
#include "tests/support/faulty_files.h"
#include "tests/support/temp_dir.h"
#include "tests/train/small_checkpoint.h"
#include "train/checkpoint.h"
#include "train/checkpoint_format.h"

namespace rowan {
namespace {

using test::SmallState;
using test::TempDir;
using testing::AnyOf;
using testing::HasSubstr;

using Bytes = std::vector<uint8_t>;

Bytes small_file() {
  const CheckpointImage image = SmallState().image();
  return {image.bytes().begin(), image.bytes().end()};
}

struct Failure {
  std::string message, hint;
  ErrorKind kind = ErrorKind::kUsage;
};

class Damage : public testing::Test {
 protected:
  // What Checkpoint::open says about these bytes; "" when it opens them.
  Failure open(const Bytes& bytes) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    try {
      Checkpoint::open(path_);
    } catch (const Error& e) {
      return {e.what(), e.hint(), e.kind()};
    }
    return {};
  }
  TempDir dir_;
  std::string path_ = dir_.file("c.h5");
};

template <class T>
void put(Bytes& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// As an attacker would: checksums that fit whatever was done.
void sign_again(Bytes& bytes) {
  std::fill(bytes.begin() + CheckpointHeader::kDigestAt, bytes.begin() + CheckpointHeader::kDigestEnd, uint8_t{0});
  const Digest digest = digest_of(bytes.data(), bytes.size());
  std::copy(digest.begin(), digest.end(), bytes.begin() + CheckpointHeader::kDigestAt);
  put(bytes, 56, hash64(bytes.data(), 56));
}

TEST_F(Damage, every_changed_byte_is_detected) {
  const Bytes good = small_file();
  ASSERT_EQ(open(good).message, "");
  ASSERT_LT(good.size(), 40000u);
  // The file is changed in place: the check reads it anew each time.
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  const auto set = [&](size_t at, uint8_t value) {
    file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(value)).flush();
  };
  for (size_t at = 0; at < good.size(); ++at) {
    for (const uint8_t flip : {uint8_t(1u << (at % 8)), uint8_t(0xff)}) {
      set(at, good[at] ^ flip);
      EXPECT_THROW(Checkpoint::open(path_), Error) << at;
    }
    set(at, good[at]);
  }
  EXPECT_NO_THROW(Checkpoint::open(path_));
}

TEST_F(Damage, every_truncation_is_detected) {
  Bytes bytes = small_file();
  open(bytes);
  while (!bytes.empty()) {
    bytes.pop_back();
    ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(bytes.size())), 0);
    EXPECT_THROW(Checkpoint::open(path_), Error) << bytes.size();
  }
}

TEST_F(Damage, each_kind_has_its_own_words) {
  const Bytes good = small_file();
  EXPECT_THAT(open({}).message, HasSubstr("is empty"));
  EXPECT_THAT(open({'n', 'o', 'n', 'e'}).message, HasSubstr("not a Rowan checkpoint"));
  EXPECT_THAT(open(Bytes(good.begin(), good.begin() + 100)).message, HasSubstr("cut off within its header"));
  EXPECT_THAT(open(Bytes(good.begin(), good.end() - 1)).message, HasSubstr("it is cut off"));
  Bytes longer = good;
  longer.push_back(0);
  EXPECT_THAT(open(longer).message, HasSubstr("grew after it was written"));
  Bytes changed = good;
  changed[good.size() / 2] ^= 1;
  EXPECT_THAT(open(changed).message, HasSubstr("is damaged or was edited"));
  EXPECT_THAT(open(changed).hint, HasSubstr("rowan convert"));
  Bytes header = good;
  header[20] ^= 1;
  EXPECT_THAT(open(header).message, HasSubstr("header of"));
  const Failure foreign = open(Bytes(good.begin() + 512, good.end()));
  EXPECT_THAT(foreign.message, HasSubstr("is an HDF5 file, but Rowan did not write it"));
  EXPECT_THAT(foreign.hint, HasSubstr("rowan convert"));
  EXPECT_EQ(foreign.kind, ErrorKind::kData);
}

TEST_F(Damage, a_newer_version_is_refused_by_number) {
  Bytes newer = small_file();
  put(newer, 8, uint32_t{2});
  put(newer, 56, hash64(newer.data(), 56));
  const Failure failure = open(newer);
  EXPECT_THAT(failure.message, HasSubstr("has format version 2"));
  EXPECT_THAT(failure.message, HasSubstr("knows versions up to 1"));
  EXPECT_EQ(failure.hint, "read it with a newer Rowan");
}

TEST_F(Damage, headers_that_make_no_sense_are_refused_even_when_signed) {
  const std::function<void(Bytes&)> changes[] = {
      [](Bytes& b) { put(b, 8, uint32_t{0}); },       [](Bytes& b) { put(b, 12, uint32_t{1024}); },
      [](Bytes& b) { put(b, 16, int64_t{-1}); },      [](Bytes& b) { put(b, 24, int64_t{-1}); },
      [](Bytes& b) { put(b, 24, int64_t{0}); },       [](Bytes& b) { put(b, 24, INT64_MAX); },
      [](Bytes& b) { put(b, 32, int64_t{-1}); },      [](Bytes& b) { put(b, 32, INT64_MAX); },
      [](Bytes& b) { put(b, 32, int64_t{1} << 32); }, [](Bytes& b) { put(b, 24, static_cast<int64_t>(b.size())); },
      [](Bytes& b) { put(b, 16, int64_t{1} << 60); }, [](Bytes& b) { put(b, 32, int64_t{0}); },
  };
  for (const auto& change : changes) {
    Bytes bytes = small_file();
    change(bytes);
    sign_again(bytes);
    EXPECT_NE(open(bytes).message, "");
  }
}

// --- the index of a file that is signed, but not by us

CheckpointIndex small_index() {
  const Bytes bytes = small_file();
  const CheckpointHeader header = parse_header(std::span(bytes).first(512), static_cast<int64_t>(bytes.size()), "small");
  return parse_index({reinterpret_cast<const char*>(bytes.data()) + header.index_offset, static_cast<size_t>(header.index_bytes)},
                     static_cast<int64_t>(bytes.size()), "small");
}

std::string parse(const std::string& text, int64_t file_bytes) {
  try {
    parse_index(text, file_bytes, "hostile");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(CheckpointIndex, text_comes_back_as_it_was) {
  const CheckpointIndex index = small_index();
  const std::string text = encode_index(index);
  const CheckpointIndex again = parse_index(text, 1 << 20, "again");
  EXPECT_EQ(encode_index(again), text);
  EXPECT_EQ(again.arrays.size(), 11u);
}

TEST(CheckpointIndex, hostile_entries_are_refused) {
  const std::function<void(ArrayInfo&)> changes[] = {
      [](ArrayInfo& a) { a.offset = 0; },
      [](ArrayInfo& a) { a.offset = 511; },
      [](ArrayInfo& a) { a.offset = -1; },
      [](ArrayInfo& a) { a.offset = INT64_MAX; },
      [](ArrayInfo& a) { a.offset = (1 << 20) - 1; },
      [](ArrayInfo& a) { a.bytes = -8; },
      [](ArrayInfo& a) { a.bytes = INT64_MAX; },
      [](ArrayInfo& a) { a.bytes += 1; },
      [](ArrayInfo& a) {
        a.dims = {INT64_MAX, 2};
      },
      [](ArrayInfo& a) {
        a.dims = {int64_t{1} << 32, int64_t{1} << 32};
      },  // wraps to 0 when multiplied carelessly
      [](ArrayInfo& a) { a.dims = {int64_t{1} << 40}, a.bytes = int64_t{1} << 43; },
      [](ArrayInfo& a) { a.dims = {-1}; },
      [](ArrayInfo& a) { a.dims = {1, 1, 1, 1, 1, 1, 1, 1, 1}; },
      [](ArrayInfo& a) {
        a.dtype = DType::kText, a.dims = {2, 4};
      },
      [](ArrayInfo& a) { a.path = "/model/../../etc"; },
      [](ArrayInfo& a) { a.path = "/zzz"; },
      [](ArrayInfo& a) { a.path = "/config"; },
      [](ArrayInfo& a) { a.checksum = "0123"; },
      [](ArrayInfo& a) { a.checksum[3] = 'G'; },
  };
  for (size_t i = 0; i < std::size(changes); ++i) {
    CheckpointIndex index = small_index();
    changes[i](index.arrays.back());  // /train/step: 8 bytes
    index.state_digest = state_digest_of(index.arrays);
    EXPECT_NE(parse(encode_index(index), 1 << 20), "") << i;
  }
  CheckpointIndex shared = small_index();
  shared.arrays[2].offset = shared.arrays[4].offset;  // the weight and its moment
  shared.state_digest = state_digest_of(shared.arrays);
  EXPECT_THAT(parse(encode_index(shared), 1 << 20), HasSubstr("share the bytes"));
  CheckpointIndex digest = small_index();
  digest.state_digest[0] ^= 1;
  EXPECT_THAT(parse(encode_index(digest), 1 << 20), HasSubstr("digest"));
}

TEST(CheckpointIndex, no_change_of_text_crashes_and_what_parses_stays_in_the_file) {
  const std::string good = encode_index(small_index());
  constexpr int64_t kFile = 1 << 20;
  int refused = 0;
  const auto check = [&](const std::string& text) {
    try {
      for (const ArrayInfo& a : parse_index(text, kFile, "fuzzed").arrays) {
        EXPECT_GE(a.offset, 0);
        EXPECT_GE(a.bytes, 0);
        EXPECT_LE(a.bytes, kFile);
        EXPECT_LE(a.offset, kFile);
      }
    } catch (const Error&) {
      ++refused;
    }
  };
  for (size_t n = 0; n < good.size(); ++n) check(good.substr(0, n));
  EXPECT_GE(refused, static_cast<int>(good.size()) - 20);  // only whole lines at the end may be missing, and hardly those
  const RandomKey key{.seed = 3, .purpose = Purpose::kTest};
  for (uint64_t i = 0; i < 20000; ++i) {
    std::string text = good;
    text[random_below(key, 2 * i, text.size())] = "09 ,()\n/ax-\xff"[random_below(key, 2 * i + 1, 12)];
    check(text);
  }
  EXPECT_GT(refused, 10000);
}

// --- verify_checkpoint

TEST_F(Damage, verification_names_the_damaged_array) {
  Bytes bytes = small_file();
  open(bytes);
  const Checkpoint checkpoint = Checkpoint::open(path_);
  const int64_t at = checkpoint.find("/loader/steps")->offset + 3;
  bytes[static_cast<size_t>(at)] ^= 4;
  open(bytes);
  const VerifyReport report = verify_checkpoint(path_);
  EXPECT_FALSE(report.ok());
  EXPECT_TRUE(report.may_be_edited);
  EXPECT_THAT(report.damaged, testing::ElementsAre("/loader/steps"));
  EXPECT_EQ(report.arrays.size(), checkpoint.arrays().size());
  open(small_file());
  EXPECT_TRUE(verify_checkpoint(path_).ok());
  open({'x'});
  EXPECT_FALSE(verify_checkpoint(path_).may_be_edited);
}

TEST_F(Damage, verification_does_not_call_damaged_what_it_can_not_read) {
  open(small_file());
  for (const auto& [path, reason] : {std::pair{dir_.file("none"), "ENOENT"}, {dir_.path().string(), "is a directory"}}) {
    const VerifyReport report = verify_checkpoint(path);
    EXPECT_FALSE(report.ok());
    EXPECT_TRUE(report.unreadable) << path;
    EXPECT_THAT(report.problem, HasSubstr(reason));
  }
  for (const int code : {EACCES, EMFILE, EIO}) {  // a device that gives nothing back is damaged, or as good as that
    int problems = 0;
    for (int n = 0;; ++n) {
      test::FaultyFiles files({.at = n, .code = code, .from_then_on = true});
      const VerifyReport report = verify_checkpoint(path_, files);
      if (!files.struck()) break;
      problems += !report.ok();
      EXPECT_EQ(report.unreadable, !report.ok() && code != EIO) << n << ' ' << code << ' ' << report.problem;
    }
    EXPECT_GT(problems, 5);
  }
  open({'x'});
  EXPECT_FALSE(verify_checkpoint(path_).unreadable);
}

}  // namespace
}  // namespace rowan
