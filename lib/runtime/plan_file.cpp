#include "runtime/plan_file.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
#include "device/plan_line.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Choices = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view format_line = "lockstep kernel plan 1";
constexpr std::size_t max_choices = 8192;  // a large network has about 160 for each batch and image size
constexpr std::size_t max_line_bytes = 512;
constexpr std::size_t max_bytes = (max_choices + 3) * max_line_bytes;

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char letter) { return letter >= ' ' && letter <= '~'; });
}

// Removes the next line from `text` and returns it. Nothing if no complete line is left.
std::optional<std::string_view> take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::optional<PlanLine> choice_in(std::string_view line) {
  if (line.size() > max_line_bytes || !is_printable(line)) return std::nullopt;
  return split_plan_line(line);
}

// Calls `visit` for every line with a choice. Returns the number of other lines.
template <typename Visit>
std::int64_t visit_choices(std::string_view plan, const Visit& visit) {
  std::int64_t others = 0;
  while (!plan.empty()) {
    const std::size_t end = plan.find('\n');
    const std::optional<PlanLine> choice = choice_in(plan.substr(0, end == std::string_view::npos ? 0 : end));
    if (choice) visit(*choice);
    others += choice ? 0 : 1;
    plan.remove_prefix(std::min(end, plan.size() - 1) + 1);
  }
  return others;
}

Choices choices_of(std::string_view plan) {
  Choices choices;
  visit_choices(plan, [&](const PlanLine& line) { choices.insert_or_assign(std::string(line.problem), line.kernel); });
  return choices;
}

std::string text_of(const Choices& choices) {
  std::string text;
  for (const auto& [problem, kernel] : choices) text.append(problem).append(" = ").append(kernel).append("\n");
  return text;
}

std::string count_line(std::size_t count) { return fmt::format("choices: {}", count); }

// Readable, and different for different conditions.
std::string file_name(std::string_view conditions) {
  constexpr std::size_t max_readable = 120;
  std::string name;
  for (const char letter : conditions.substr(0, max_readable)) {
    const bool plain = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z');
    const bool capital = letter >= 'A' && letter <= 'Z';
    if (plain || capital) name += static_cast<char>(capital ? letter - 'A' + 'a' : letter);
    if (!plain && !capital && !name.empty() && name.back() != '-') name += '-';
  }
  return fmt::format("{}-{:016x}.plan", name, XXH3_64bits(conditions.data(), conditions.size()));
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw system_failure(fmt::format("cannot create the folder '{}'", folder.string()), error.value(), Access::writing);
}

}  // namespace

PlanFile::PlanFile(const fs::path& folder, std::string conditions) : conditions_(std::move(conditions)) {
  if (!folder.empty()) path_ = folder / file_name(conditions_);
}

// Parses the text of a file. Throws Error(bad_data) with the defect, for a message that names the file.
PlanFile::Choices PlanFile::parse(std::string_view text) const {
  require(take_line(text) == format_line, Failure::bad_data, "its first line is not '{}'.", format_line);
  require(take_line(text) == conditions_, Failure::bad_data, "it is not for '{}'.", conditions_);
  const std::optional<std::string_view> count = take_line(text);
  Choices choices;
  const std::int64_t others = visit_choices(
      text, [&](const PlanLine& line) { choices.insert_or_assign(std::string(line.problem), line.kernel); });
  require(others == 0 && count == count_line(choices.size()), Failure::bad_data,
          "its number of lines 'problem = kernel' is not the one that it states.");
  return choices;
}

PlanFile::Content PlanFile::load() const {
  if (path_.empty() || is_absent(path_)) return {};
  try {
    return {parse(read_file(path_, max_bytes)), ""};
  } catch (const Error& reason) {
    return {{}, reason.what()};
  }
}

std::string PlanFile::read() const {
  const Content content = load();
  if (!content.mistake.empty()) {
    log::warning("the kernel plan '{}' is not used: {} The kernels are measured again.", path_.string(),
                 content.mistake);
  }
  return text_of(content.choices);
}

void PlanFile::keep(std::string_view plan) const {
  Choices all = choices_of(plan);
  if (path_.empty()) return;
  Choices known = load().choices;
  if (std::ranges::includes(known, all)) return;
  if (all.size() + known.size() <= max_choices) all.merge(known);
  const std::string text =
      fmt::format("{}\n{}\n{}\n{}", format_line, conditions_, count_line(all.size()), text_of(all));
  try {
    require(text.size() <= max_bytes, Failure::other, "they take {} bytes, but at most {} bytes can be read.",
            text.size(), max_bytes);
    make_folder(path_.parent_path());
    write_file_atomically(path_, text);
  } catch (const Error& reason) {
    log::warning("kernel choices are not saved for the next run: {} To save none, set --plan-folder ''.",
                 reason.what());
  }
}

PlanUse plan_use(std::string_view known, std::string_view used) {
  const Choices earlier = choices_of(known);
  PlanUse use;
  for (const auto& [problem, kernel] : choices_of(used)) {
    const auto found = earlier.find(problem);
    ++(found != earlier.end() && found->second == kernel ? use.recalled : use.measured);
  }
  return use;
}

fs::path default_plan_folder(const JobEnvironment& job) {
  return job.cache_folder.empty() ? fs::path() : job.cache_folder / "lockstep";
}

}  // namespace lockstep
