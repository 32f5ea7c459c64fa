#include "run/run_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>

namespace lockstep {

std::optional<RegularFile> open_run_file(const std::filesystem::path& path) try {
  return RegularFile(path, Links::refused);
} catch (const std::exception&) {
  return std::nullopt;
}

std::string read_at(const RegularFile& file, std::size_t offset, std::size_t max_bytes) {
  std::string text(max_bytes, '\0');
  std::size_t length = 0;
  while (length < max_bytes) {
    const ssize_t got =
        ::pread(file.descriptor(), text.data() + length, max_bytes - length, static_cast<off_t>(offset + length));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  text.resize(length);
  return text;
}

std::optional<std::string> read_run_file(const std::filesystem::path& path, std::size_t limit_bytes) {
  const std::optional<RegularFile> file = open_run_file(path);
  if (!file || file->bytes() > limit_bytes) return std::nullopt;
  return read_at(*file, 0, file->bytes());
}

std::optional<std::int64_t> written_at(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? std::optional<std::int64_t>(status.st_mtime) : std::nullopt;
}

std::optional<std::int64_t> count_in(const nlohmann::json& object, std::string_view field) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  const auto count = found->get<std::int64_t>();
  return count >= 0 && count <= most ? std::optional(count) : std::nullopt;
}

std::optional<double> number_in(const nlohmann::json& object, std::string_view field) {
  constexpr double most = 1e15;
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const auto number = found->get<double>();
  return number >= 0 && number <= most ? std::optional(number) : std::nullopt;
}

std::optional<double> finite_number_in(const nlohmann::json& object, std::string_view field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const auto number = found->get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::string text_in(const nlohmann::json& object, std::string_view field) {
  const auto found = object.find(field);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

std::vector<std::string> texts_in(const nlohmann::json& object, std::string_view field) {
  std::vector<std::string> texts;
  const auto found = object.find(field);
  if (found == object.end() || !found->is_array()) return texts;
  for (const nlohmann::json& element : *found) {
    if (element.is_string()) texts.push_back(element.get<std::string>());
  }
  return texts;
}

}  // namespace lockstep
