// Both ends of the pipe between a program and its helper. Each line is a class, "1 n02119789", and the last line is
// "end". In case of an error there is one line, "fault CODE SENTENCE".
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <sstream>
#include <string_view>

#include "base/log.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"
#include "dataset/pictures/meta_mat.hpp"

namespace lockstep {
namespace {

constexpr std::string_view fault_mark = "fault ";
constexpr std::string_view end_mark = "end";
constexpr std::int64_t max_classes = 1'000'000;
constexpr std::size_t longest_sentence = 8192;

Error damaged(const std::filesystem::path& file, const std::string& message) {
  return {Failure::bad_data,
          fmt::format(
              "'{}' is damaged: {}. Download the development kit again, or replace meta.mat with its map_clsloc.txt.",
              printable(file.string()), message)};
}

// Why the helper was terminated; empty if it exited by itself.
std::string describe_end(const HelperResult& helper) {
  if (helper.took_too_long) return "reading it takes too long";
  if (helper.printed_too_much) return "it names too many classes";
  if (!helper.signal) return {};
  const char* const name = ::sigabbrev_np(*helper.signal);
  return fmt::format("libmatio crashes while it reads the file (SIG{})", name == nullptr ? "?" : name);
}

std::optional<Error> stated_fault(std::string_view line) {
  if (!line.starts_with(fault_mark)) return std::nullopt;
  line.remove_prefix(fault_mark.size());
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto code = parse_number<int>(line.substr(0, space), {0, 255});
  const bool is_default_point = code == static_cast<int>(Failure::usage) || code == static_cast<int>(Failure::bad_data);
  if (!is_default_point) return std::nullopt;
  return Error(static_cast<Failure>(*code), printable(std::string(line.substr(space + 1, longest_sentence))));
}

// Adds the class in `line`; false if the line is invalid or the class is already present.
bool add_class(std::string_view line, ClassNumbers& classes) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return false;
  const auto number = parse_number<std::int64_t>(line.substr(0, space), {1, max_classes});
  const std::string_view name = line.substr(space + 1);
  return number && is_class_name(name) && classes.emplace(*number, name).second;
}

std::string answer(const std::filesystem::path& file) {
  try {
    std::string text;
    for (const auto& [number, name] : read_meta_mat(file)) text += fmt::format("{} {}\n", number, name);
    return text + std::string(end_mark) + '\n';
  } catch (const Error& error) {
    return fmt::format("{}{} {}\n", fault_mark, error.exit_code(), error.what());
  }
}

}  // namespace

bool is_class_name(std::string_view name) {
  return name.size() == 9 && name.front() == 'n' &&
         name.substr(1).find_first_not_of("0123456789") == std::string_view::npos;
}

int print_meta_mat(const std::filesystem::path& file) {
  confine_helper();
  const std::string text = answer(file);
  std::string_view unwritten = text;
  while (!unwritten.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, unwritten.data(), unwritten.size());
    if (written <= 0) return 1;
    unwritten.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

MetaMat read_meta_mat_by_helper(const std::filesystem::path& file) {
  return meta_mat_from(run_helper({meta_mat_command, file.string()}), file);
}

MetaMat meta_mat_from(const HelperResult& helper, const std::filesystem::path& file) {
  if (const std::string message = describe_end(helper); !message.empty()) return {{}, damaged(file, message)};
  ClassNumbers classes;
  std::istringstream lines(helper.output);
  std::string line;
  while (std::getline(lines, line) && line != end_mark) {
    if (std::optional<Error> fault = stated_fault(line); fault && classes.empty()) return {{}, std::move(fault)};
    if (!add_class(line, classes)) return {{}, damaged(file, "libmatio does not read a list of classes from it")};
  }
  const bool is_whole = line == end_mark && helper.exit_code == 0 && !classes.empty();
  if (!is_whole) return {{}, damaged(file, "reading it ends before the list of classes is complete")};
  return {std::move(classes), {}};
}

}  // namespace lockstep
