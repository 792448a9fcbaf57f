// Reading a text of any length in pieces that never cut a character in two.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "train/file_system.h"

namespace rowan {

// Gives the whole file to take(piece, offset of piece) in pieces of at most 1 MiB, which do not end inside a UTF-8 character unless
// the file itself does. Returns the bytes of the file. What is appended to it meanwhile is not read; a file that shrinks is an
// Error, and so is a directory, a device or a pipe (a text is read twice: for its vocabulary and for its ids).
int64_t read_pieces(const std::string& path, const std::function<void(std::string_view, int64_t)>& take,
                    FileSystem& files = system_files());

}  // namespace rowan
