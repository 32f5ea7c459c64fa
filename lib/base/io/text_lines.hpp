// Line-by-line reading of text files that people write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace lockstep {

// Calls `take` with each line's number, from 1, and its text without the line end ("\n" or "\r\n"). Skips a UTF-8
// byte-order mark at the beginning. Throws as read_file(). Throws Error(bad_data) with the number of the first line
// that holds a NUL byte, before the first call of `take`.
void for_each_line(const std::filesystem::path& file, std::size_t limit_bytes,
                   const std::function<void(std::int64_t, std::string_view)>& take);

}  // namespace lockstep
