// A checkpoint with one of its texts changed, signed like any other: what another machine, or somebody with a bad intent, may have
// written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint.h"

namespace rowan::test {

// Publishes a copy of `checkpoint` at `to`, in place of what stands there, whose `path` holds `text`; without a text it has no such
// entry.
inline void publish_changed(const Checkpoint& checkpoint, const std::string& path, const std::optional<std::string>& text,
                            const std::string& to) {
  CheckpointWriter writer;
  std::vector<std::vector<uint8_t>> held;
  for (const ArrayInfo& a : checkpoint.arrays()) {
    if (a.path == path) continue;
    held.emplace_back(static_cast<size_t>(a.bytes));
    checkpoint.read(a, held.back().data());
    writer.add({.path = a.path, .dtype = a.dtype, .dims = a.dims, .data = held.back().data()});
  }
  if (text) writer.add_text(path, *text);
  publish_checkpoint(writer.build({}), to, IfExists::kReplace);
}

}  // namespace rowan::test
