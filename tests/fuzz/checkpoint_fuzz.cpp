// Checkpoint files and their inspection. The first byte chooses what the bytes are: 0 the file as it is; 1 a file whose header is
// signed anew; 2 an index, over 4096 bytes of data, signed.
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/signed_file.h"
#include "train/session.h"

namespace rowan::fuzz {
namespace {

constexpr size_t kDataBytes = 4096;

std::vector<uint8_t> file_of(int kind, Bytes bytes) {
  std::vector<uint8_t> file(bytes.begin(), bytes.end());
  if (kind == 0) return file;
  if (kind == 2) return signed_file(std::vector<uint8_t>(kDataBytes), text_of(bytes));
  if (file.size() < CheckpointHeader::kBytes) return file;
  CheckpointHeader header;
  header.file_bytes = static_cast<int64_t>(file.size());
  std::memcpy(&header.index_offset, file.data() + 24, sizeof header.index_offset);
  std::memcpy(&header.index_bytes, file.data() + 32, sizeof header.index_bytes);
  sign(header, file);
  return file;
}

void read_all(const Checkpoint& checkpoint) {
  for (const ArrayInfo& array : checkpoint.arrays()) {
    check(array.bytes >= 0 && array.bytes <= checkpoint.file_bytes(), "an array is not larger than its file");
    std::vector<uint8_t> bytes(static_cast<size_t>(array.bytes));
    accepted([&] { checkpoint.read(array, bytes.data()); });
    check(!array.shape_text().empty(), "a shape has a text");
  }
}

void use(const std::string& path) {
  const VerifyReport report = verify_checkpoint(path);
  const bool opened = accepted([&] { read_all(Checkpoint::open(path)); });
  check(opened == report.ok(), "what verifies opens, and nothing else");
  if (!opened) return;
  Checkpoint checkpoint = Checkpoint::open(path);
  accepted([&] { load_model(checkpoint); });
  accepted([&] { checkpoint.integer("/train/step"); });
}

}  // namespace
}  // namespace rowan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rowan::fuzz;
  static const MemoryFile file;
  Input input(data, size);
  const int kind = input.number<uint8_t>() % 3;
  file.write(file_of(kind, input.all()));
  use(file.path());
  return 0;
}
