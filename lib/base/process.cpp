#include "base/process.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <csignal>
#include <limits>
#include <sstream>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/number.hpp"

namespace lockstep {
namespace {

std::string live_text(const std::string& path) {
  constexpr std::size_t longest = 4096;
  try {
    return read_live_file(path, longest);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

std::optional<ProcessStat> process_stat(std::int64_t process) {
  const std::string text = live_text(fmt::format("/proc/{}/stat", process));
  const std::size_t name_end = text.rfind(')');  // the name may contain anything, even spaces and parentheses
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  constexpr int state_field = 3;
  constexpr int start_field = 22;
  constexpr int end_field = 52;
  ProcessStat stat;
  std::string field;
  for (int number = state_field; number <= end_field && fields >> field; ++number) {
    if (number == state_field) stat.state = field[0];
    if (number == start_field) {
      const NumberRange<std::uint64_t> ticks{0, std::numeric_limits<std::uint64_t>::max()};
      stat.start_ticks = parse_number(field, ticks).value_or(0);
    }
    if (number == end_field && stat.has_ended()) {
      stat.end_status = parse_number(field, NumberRange<int>{0, std::numeric_limits<int>::max()});
    }
  }
  return stat;
}

std::string boot_id() {
  std::string text = live_text("/proc/sys/kernel/random/boot_id");
  std::erase(text, '\n');
  return text;
}

std::int64_t pid_namespace() {
  struct stat entry {};
  return ::stat("/proc/self/ns/pid", &entry) == 0 ? static_cast<std::int64_t>(entry.st_ino) : 0;
}

void restore_default_effect(int signal) {
  struct sigaction now {};
  if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) ::signal(signal, SIG_DFL);
}

}  // namespace lockstep
