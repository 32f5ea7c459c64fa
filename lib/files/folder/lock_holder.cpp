#include "files/folder/lock_holder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "base/text/number.hpp"
#include "runtime/watch/rank_view.hpp"

namespace lockstep {

namespace {

using Json = nlohmann::json;

std::string small_file(const std::string& path) {
  constexpr std::size_t longest = 4096;
  try {
    return read_live_file(path, longest);
  } catch (const Error&) {
    return "";
  }
}

// When a process started, as clock ticks of one boot of the machine (proc(5), field 22); empty if it is no more.
std::string start_of(std::int64_t process) {
  const std::string text = small_file(fmt::format("/proc/{}/stat", process));
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string field;
  fields >> field;  // field 3, the state
  if (text.empty() || field == "Z" || field == "X") return "";
  for (int number = 4; number <= 22; ++number) fields >> field;
  std::string boot = small_file("/proc/sys/kernel/random/boot_id");
  std::erase(boot, '\n');
  return fmt::format("{}@{}", field, boot);
}

std::string word_of_environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value == nullptr ? "" : std::string(value).substr(0, 64);
}

std::string random_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

LockHolder this_lock_holder() { return lock_holder_of(::getpid()); }

LockHolder lock_holder_of(std::int64_t process) {
  LockHolder holder;
  holder.job = word_of_environment("SLURM_JOB_ID");
  constexpr NumberRange<std::int64_t> restarts{0, std::int64_t{1} << 40};
  holder.restarts = parse_number(word_of_environment("SLURM_RESTART_COUNT"), restarts).value_or(0);
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  holder.host = host.data();
  holder.process = process;
  holder.start = start_of(holder.process);
  struct stat entry {};
  if (::stat("/proc/self/ns/pid", &entry) == 0) holder.name_space = static_cast<std::int64_t>(entry.st_ino);
  holder.token = random_token();
  return holder;
}

std::string lock_holder_text(const LockHolder& holder) {
  const Json json = {{"job", holder.job},         {"restarts", holder.restarts}, {"host", holder.host},
                     {"process", holder.process}, {"start", holder.start},       {"name_space", holder.name_space},
                     {"token", holder.token}};
  return json_text(json);
}

std::optional<LockHolder> parse_lock_holder(const std::string& line) {
  try {
    const Json json = Json::parse(line);
    LockHolder holder;
    json.at("job").get_to(holder.job);
    json.at("restarts").get_to(holder.restarts);
    json.at("host").get_to(holder.host);
    json.at("process").get_to(holder.process);
    json.at("start").get_to(holder.start);
    json.at("name_space").get_to(holder.name_space);
    json.at("token").get_to(holder.token);
    return holder;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string lock_holder_words(const LockHolder& holder) {
  return fmt::format("{}on {} (process {})", holder.job.empty() ? "one " : fmt::format("job {} ", holder.job),
                     holder.host, holder.process);
}

Fate fate_of(const LockHolder& holder, const LockHolder& own) {
  if (!own.job.empty() && holder.job == own.job && holder.restarts < own.restarts) return Fate::gone;
  const bool is_near = holder.host == own.host && holder.name_space == own.name_space && own.name_space != 0;
  if (!is_near) return Fate::unknown;
  if (start_of(holder.process) != holder.start) return Fate::gone;
  const char state = process_state_of(static_cast<int>(holder.process));
  return state == 'T' || state == 't' || state == '?' ? Fate::unknown : Fate::alive;
}

}  // namespace lockstep
