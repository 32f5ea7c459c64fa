// Lists of data files, as PaddlePaddle's train.list and test.list: a path on each line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr const char* train_list = "train.list";
inline constexpr const char* test_list = "test.list";

struct ListLine {
  std::int64_t number;  // from 1
  std::string text;     // not empty, without trailing white space
};
// The lines of `file` that are not empty. Throws as for_each_line().
std::vector<ListLine> read_list(const std::filesystem::path& file);

// The beginning of a list's text, for messages.
std::string shown(std::string_view text);

// How to open the file that a list in `folder` calls `path`: relative to `folder`, or absolute. If only the working
// directory has that file, as with PaddlePaddle's lists, the result is absolute.
std::string listed_file(const std::filesystem::path& folder, const std::string& path);

struct FileLists {
  std::vector<std::filesystem::path> train;
  std::vector<std::filesystem::path> test;
};
// The files that train.list and test.list in `folder` name. std::nullopt if it has neither list. Throws Error(usage) if
// it has only one, Error(bad_data) if a list is empty, or a line is not the path of a file, or names a
// file again, also under another name (link).
// `example` is a file name for messages.
std::optional<FileLists> read_file_lists(const std::filesystem::path& folder, std::string_view example);

}  // namespace lockstep
