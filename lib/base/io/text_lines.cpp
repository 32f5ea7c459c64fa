#include "base/io/text_lines.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/io/file.hpp"

namespace lockstep {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

void require_no_nul(std::string_view text, const std::filesystem::path& file) {
  const std::size_t nul = text.find('\0');
  require(nul == std::string_view::npos, Failure::bad_data,
          "line {} of '{}' contains a NUL byte. The file is binary or UTF-16. Save it as UTF-8 text.",
          std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(nul, text.size())), '\n') + 1,
          file.string());
}

}  // namespace

void for_each_line(const std::filesystem::path& file, std::size_t limit_bytes,
                   const std::function<void(std::int64_t, std::string_view)>& take) {
  const std::string content = read_file(file, limit_bytes);
  std::string_view text = content;
  require_no_nul(text, file);
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    take(number, line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace lockstep
