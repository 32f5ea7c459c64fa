// Lists that people write: text files that are read line by line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace lockstep {

// Calls `take` with each line's number, from 1, and its text, without the line's end ("\n" or "\r\n"). A UTF-8
// byte-order mark at the beginning is passed over. Throws as read_file(), and Error(bad_data) naming the first line
// that holds a NUL byte, before anything is taken.
void for_each_line(const std::filesystem::path& file, std::size_t limit_bytes,
                   const std::function<void(std::int64_t, std::string_view)>& take);

}  // namespace lockstep
