// Work that may crash: libhdf5 on a file from anywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace rowan::tools {

// Does `work` in a child process. An Error it throws comes out here; so does an Error (kData) that names `path` when the child
// crashed, or took more memory or processor time than a file of `bytes` bytes can need. Nothing else comes back from the child: it
// prints its results, or writes them to a file.
void run_guarded(const std::function<void()>& work, const std::string& path, int64_t bytes);

}  // namespace rowan::tools
