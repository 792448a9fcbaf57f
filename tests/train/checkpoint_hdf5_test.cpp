// The HDF5 side: what other programs read is what our index says, and read_hdf5() refuses every trick a file can play.
#include "train/checkpoint_hdf5.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <fstream>
#include <functional>

#include "tests/support/run_command.h"
#include "tests/support/temp_dir.h"
#include "tests/train/small_checkpoint.h"
#include "train/checkpoint_format.h"

namespace rowan {
namespace {

using test::run_command;
using test::SmallState;
using test::TempDir;
using testing::AllOf;
using testing::HasSubstr;

std::string write_small(const TempDir& dir) {
  const std::string path = dir.file("c.h5");
  publish_checkpoint(SmallState().image(), path, IfExists::kRefuse);
  return path;
}

TEST(CheckpointHdf5, libhdf5_sees_what_the_index_says) {
  const TempDir dir;
  const std::string path = write_small(dir);
  const Checkpoint checkpoint = Checkpoint::open(path);
  const Hdf5Contents contents = read_hdf5(path);
  EXPECT_EQ(contents.info.created, checkpoint.info().created);
  EXPECT_EQ(contents.info.rowan_version, checkpoint.info().rowan_version);
  EXPECT_TRUE(contents.info.complete);
  ASSERT_EQ(contents.arrays.size(), checkpoint.arrays().size());
  for (size_t i = 0; i < contents.arrays.size(); ++i) {
    const ArrayInfo& info = checkpoint.arrays()[i];
    const auto& array = contents.arrays[i];
    EXPECT_EQ(array.ref.path, info.path);
    EXPECT_EQ(array.ref.dtype, info.dtype) << info.path;
    EXPECT_EQ(array.ref.dims, info.dims) << info.path;
    std::vector<uint8_t> ours(static_cast<size_t>(info.bytes));
    checkpoint.read(info, ours.data());
    EXPECT_EQ(array.bytes, ours) << info.path;
  }
}

TEST(CheckpointHdf5, h5dump_prints_it) {
  const TempDir dir;
  const std::string path = write_small(dir);
  const auto all = run_command({"h5dump", path});
  ASSERT_EQ(all.exit_code, 0) << all.err << "(h5dump is in Debian's hdf5-tools)";
  for (const char* name : {"\"format\"", "\"version\"", "\"created\"", "\"rowan_version\"", "\"complete\"", "\"config\"",
                           "\"blocks.0.attn.qkv.weight\"", "\"m\"", "\"state\"", "\"index\""}) {
    EXPECT_THAT(all.out, HasSubstr(name));
  }
  const auto weight = run_command({"h5dump", "-y", "-w", "80", "-d", "/model/blocks.0.attn.qkv.weight", path});
  EXPECT_THAT(weight.out, AllOf(HasSubstr("SIMPLE { ( 2, 3 ) / ( 2, 3 ) }"), HasSubstr("1, -2, 3,"), HasSubstr("0.25, 5, -6")));
  EXPECT_THAT(weight.out, HasSubstr(kRealIsDouble ? "H5T_IEEE_F64LE" : "H5T_IEEE_F32LE"));
  EXPECT_THAT(run_command({"h5dump", "-d", "/config", path}).out, HasSubstr("d_model = 8"));
}

// --- structures that are refused

class Foreign : public testing::Test {
 protected:
  Foreign() {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    publish_checkpoint(SmallState().image(), path_, IfExists::kRefuse);
    file_ = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  }
  ~Foreign() override {
    if (file_ >= 0) H5Fclose(file_);
  }
  std::string read() {
    H5Fclose(file_);
    file_ = -1;
    try {
      read_hdf5(path_);
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  }
  // A dataset of type and dims with a property list, without data.
  void add(
      const char* name, hid_t type, std::vector<hsize_t> dims, const std::function<void(hid_t)>& set = [](hid_t) {}) {
    const hid_t space =
        dims.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    set(list);
    const hid_t dataset = H5Dcreate2(file_, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    ASSERT_GE(dataset, 0);
    H5Dclose(dataset);
    H5Pclose(list);
    H5Sclose(space);
  }
  static void allocate_early(hid_t list) { H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY); }

  TempDir dir_;
  std::string path_ = dir_.file("c.h5");
  hid_t file_ = -1;
};

TEST_F(Foreign, a_plain_new_array_is_accepted) {
  add("/model/new", H5T_IEEE_F32LE, {4}, allocate_early);
  EXPECT_EQ(read(), "accepted");
}
TEST_F(Foreign, soft_links) {
  H5Lcreate_soft("/config", file_, "/model/link", H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_THAT(read(), AllOf(HasSubstr("/model/link"), HasSubstr("soft or external link")));
}
TEST_F(Foreign, external_links) {
  H5Lcreate_external("/etc/passwd", "/x", file_, "/model/link", H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_THAT(read(), AllOf(HasSubstr("/model/link"), HasSubstr("soft or external link")));
}
TEST_F(Foreign, external_storage) {
  add("/model/x", H5T_IEEE_F32LE, {4}, [](hid_t list) { H5Pset_external(list, "/etc/passwd", 0, 16); });
  EXPECT_THAT(read(), AllOf(HasSubstr("/model/x"), HasSubstr("another file")));
}
TEST_F(Foreign, chunks_and_filters) {
  add("/model/x", H5T_IEEE_F32LE, {4}, [](hid_t list) {
    const hsize_t chunk = 2;
    H5Pset_chunk(list, 1, &chunk);
    H5Pset_deflate(list, 1);
  });
  EXPECT_THAT(read(), AllOf(HasSubstr("/model/x"), HasSubstr("contiguous storage is needed")));
}
TEST_F(Foreign, virtual_datasets) {
  add("/model/x", H5T_IEEE_F32LE, {4}, [](hid_t list) {
    const hsize_t four = 4;
    const hid_t space = H5Screate_simple(1, &four, nullptr);
    H5Pset_virtual(list, space, "/etc/passwd", "x", space);
    H5Sclose(space);
  });
  EXPECT_THAT(read(), AllOf(HasSubstr("/model/x"), HasSubstr("contiguous storage is needed")));
}
TEST_F(Foreign, huge_shapes_without_data) {
  add("/model/x", H5T_IEEE_F32LE, {hsize_t{1} << 40});  // nothing is stored before it is written
  EXPECT_THAT(read(), AllOf(HasSubstr("/model/x"), HasSubstr("has 0 bytes of data")));
}
TEST_F(Foreign, strings_of_variable_length) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  add("/train/x", type, {});
  H5Tclose(type);
  EXPECT_THAT(read(), HasSubstr("numpy.bytes_"));
}
TEST_F(Foreign, other_types) {
  add("/model/x", H5T_IEEE_F32BE, {4}, allocate_early);
  EXPECT_THAT(read(), HasSubstr("another type"));
}
TEST_F(Foreign, unknown_groups_and_names) {
  H5Gclose(H5Gcreate2(file_, "/extra", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  add("/extra/x", H5T_IEEE_F32LE, {4}, allocate_early);
  EXPECT_THAT(read(), AllOf(HasSubstr("/extra/x"), HasSubstr("does not belong")));
}
TEST_F(Foreign, groups_within_themselves) {
  H5Lcreate_hard(file_, "/model", file_, "/model/again", H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_THAT(read(), testing::AnyOf(HasSubstr("too deep"), HasSubstr("does not belong")));
}
TEST_F(Foreign, named_types) {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tcommit2(file_, "/model/type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Tclose(type);
  EXPECT_THAT(read(), HasSubstr("neither a group nor a dataset"));
}
TEST_F(Foreign, another_format) {
  H5Adelete(file_, "format");
  EXPECT_THAT(read(), HasSubstr("no attribute format"));
}

// A file of two faces: libhdf5 edits it, and then it gets a header whose digest fits, with the index as it was.
class TwoFaces : public Foreign {
 protected:
  std::string view() {
    H5Fclose(file_);
    file_ = -1;
    std::ifstream in(path_, std::ios::binary);
    std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
    CheckpointHeader header = *peek_header(std::span(bytes).first(CheckpointHeader::kBytes));
    header.file_bytes = static_cast<int64_t>(bytes.size());
    sign(header, bytes);
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    try {
      check_hdf5_view(Checkpoint::open(path_));  // which it passes
    } catch (const Error& e) {
      return e.what();
    }
    return "the same";
  }
  // Another array under the name of one that is there: the old data stays where the index says.
  void replace(const char* name, hid_t type, std::vector<hsize_t> dims) {
    add("/rng/new", type, std::move(dims), allocate_early);
    ASSERT_GE(H5Ldelete(file_, name, H5P_DEFAULT), 0);
    ASSERT_GE(H5Lmove(file_, "/rng/new", file_, name, H5P_DEFAULT, H5P_DEFAULT), 0);
  }
};

TEST_F(TwoFaces, untouched_it_has_one) {
  EXPECT_EQ(view(), "the same");
}
TEST_F(TwoFaces, data_elsewhere) {
  replace("/rng/seen", H5T_STD_I32LE, {2});
  EXPECT_THAT(view(), AllOf(HasSubstr("the place of /rng/seen"), HasSubstr("something else than its index says")));
}
TEST_F(TwoFaces, another_shape) {
  replace("/rng/seen", H5T_STD_I32LE, {2, 1});
  EXPECT_THAT(view(), HasSubstr("the shape of /rng/seen is (2,1); expected (2)"));
}
TEST_F(TwoFaces, another_type) {
  replace("/rng/seen", H5T_STD_U8LE, {2});
  EXPECT_THAT(view(), HasSubstr("the type of /rng/seen is uint8; expected int32"));
}
TEST_F(TwoFaces, one_array_more) {
  add("/model/new", H5T_IEEE_F32LE, {4}, allocate_early);
  EXPECT_THAT(view(), HasSubstr("/model/new is not in the index"));
}
TEST_F(TwoFaces, one_array_less) {
  H5Ldelete(file_, "/rng/seen", H5P_DEFAULT);
  EXPECT_THAT(view(), HasSubstr("it has 10 of 11 arrays"));
}
TEST_F(TwoFaces, another_digest) {
  H5Ldelete(file_, "/digest/state", H5P_DEFAULT);
  EXPECT_THAT(view(), HasSubstr("/digest/state or /digest/index is missing"));
}
TEST_F(TwoFaces, another_attribute) {
  H5Adelete(file_, "created");
  EXPECT_THAT(view(), HasSubstr("the attribute created"));
}

TEST(CheckpointHdf5, not_hdf5_is_an_error_with_the_librarys_reason) {
  const TempDir dir;
  std::ofstream(dir.file("x.h5")) << "text";
  try {
    read_hdf5(dir.file("x.h5"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("cannot open '" + dir.file("x.h5") + "' as HDF5: "));
  }
}

}  // namespace
}  // namespace rowan
