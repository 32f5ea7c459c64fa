#include "dataset/sources/file_list.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/io/text_lines.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t list_limit_bytes = std::size_t{1} << 30;

// Reads several lists, none of which may name a file of another one.
class FileListReader {
 public:
  FileListReader(fs::path folder, std::string_view example) : folder_(std::move(folder)), example_(example) {}

  std::vector<fs::path> read(const char* name) {
    const std::string list = (folder_ / name).string();
    std::vector<fs::path> files;
    for (const ListLine& line : read_list(list)) {
      fs::path file = folder_ / listed_file(folder_, line.text);
      struct stat found {};
      const int reason = ::stat(file.c_str(), &found) == 0 ? 0 : errno;
      require(reason == 0 && S_ISREG(found.st_mode), Failure::bad_data,
              "line {} of '{}' is not the path of a file: '{}' ({}). Write one path per line, such as '{}'. Relative "
              "paths start at the list's folder or the working directory.",
              line.number, list, shown(line.text), reason != 0 ? system_error_message(reason) : "not a file", example_);
      const std::string where = fmt::format("line {} of '{}'", line.number, list);
      const std::string& first = seen_.emplace(std::pair(found.st_dev, found.st_ino), where).first->second;
      require(
          first == where, Failure::bad_data,
          "{} names '{}', the same file as {}. Each file must be listed once, also if it has several names. Correct "
          "the list.",
          where, shown(line.text), first);
      files.push_back(std::move(file));
    }
    require(!files.empty(), Failure::bad_data, "'{}' lists no files. Write one path per line, such as '{}'.", list,
            example_);
    return files;
  }

 private:
  fs::path folder_;
  std::string_view example_;
  std::map<std::pair<dev_t, ino_t>, std::string> seen_;  // the line that names each file
};

}  // namespace

std::vector<ListLine> read_list(const fs::path& file) {
  std::vector<ListLine> lines;
  for_each_line(file, list_limit_bytes, [&](std::int64_t number, std::string_view line) {
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);  // npos + 1 is 0
    if (!line.empty()) lines.push_back({number, std::string(line)});
  });
  return lines;
}

std::string shown(std::string_view text) {
  constexpr std::size_t longest = 200;
  return printable(text.substr(0, longest)) + (text.size() > longest ? "..." : "");
}

std::string listed_file(const fs::path& folder, const std::string& path) {
  std::error_code reason;
  return !fs::exists(folder / path, reason) && fs::exists(path, reason) ? fs::absolute(path).string() : path;
}

std::optional<FileLists> read_file_lists(const fs::path& folder, std::string_view example) {
  const bool has_train = !is_absent(folder / train_list);
  const bool has_test = !is_absent(folder / test_list);
  if (!has_train && !has_test) return std::nullopt;
  require(has_train && has_test, Failure::usage,
          "'{}' has no {} beside it. Write that list too, with one path per line, such as '{}'.",
          (folder / (has_train ? train_list : test_list)).string(), has_train ? test_list : train_list, example);
  FileListReader reader(folder, example);
  FileLists lists;
  lists.train = reader.read(train_list);
  lists.test = reader.read(test_list);
  return lists;
}

}  // namespace lockstep
