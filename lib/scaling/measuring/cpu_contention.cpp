#include "scaling/measuring/cpu_contention.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/number.hpp"

namespace lockstep {
namespace {

constexpr NumberRange<double> any_count{0, 1e18};

// Parses a line of /proc/stat after its name: user, nice, system, idle, iowait, irq, softirq, steal, in ticks.
double busy_ticks(std::istringstream& line) {
  constexpr std::size_t kinds = 8;
  constexpr std::size_t idle = 3;
  constexpr std::size_t waiting = 4;
  double ticks = 0;
  std::string word;
  for (std::size_t kind = 0; kind < kinds && line >> word; ++kind) {
    const std::optional<double> one = parse_number(word, any_count);
    if (one && kind != idle && kind != waiting) ticks += *one;
  }
  return ticks;
}

// Busy time of the cores that this process may run on, since boot.
std::map<int, double> busy_seconds() {
  cpu_set_t own;
  CPU_ZERO(&own);
  ::sched_getaffinity(0, sizeof own, &own);
  const auto ticks_a_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::map<int, double> seconds;
  std::istringstream text(read_live_file("/proc/stat", std::size_t{1} << 24));
  for (std::string line; std::getline(text, line) && line.starts_with("cpu");) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const std::optional<int> core = parse_number<int>(name.substr(3), {0, CPU_SETSIZE - 1});  // nullopt: all cores
    if (core && CPU_ISSET(static_cast<std::size_t>(*core), &own)) seconds[*core] = busy_ticks(words) / ticks_a_second;
  }
  return seconds;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double process_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

struct Node {
  std::map<int, double> busy;  // share of time, by core; a map, because ranks may share cores
  double own = 0;              // in cores

  double others() const {
    double sum = -own;
    for (const auto& [core, share] : busy) sum += share;
    return sum;
  }
};

}  // namespace

CpuContention::CpuContention() : busy_seconds_(busy_seconds()), own_seconds_(process_seconds()) {}

double CpuContention::cores(const Communicator& ranks) const {
  const double seconds = std::max(watch_.seconds(), 1e-3);
  const std::map<int, double> now = busy_seconds();
  std::string own = fmt::format("{} {}", log::host(), (process_seconds() - own_seconds_) / seconds);
  for (const auto& [core, before] : busy_seconds_) {
    if (now.contains(core)) own += fmt::format(" {} {}", core, std::max(now.at(core) - before, 0.0) / seconds);
  }
  std::map<std::string, Node> nodes;
  for (const std::string& rank : ranks.all_gather(own)) {
    std::istringstream words(rank);
    std::string host;
    std::string core;
    std::string share;
    words >> host >> share;
    Node& node = nodes[host];
    node.own += parse_number(share, any_count).value_or(0);
    while (words >> core >> share) {
      node.busy[parse_number<int>(core, {0, CPU_SETSIZE}).value_or(0)] = parse_number(share, any_count).value_or(0);
    }
  }
  double most = 0;
  for (const auto& [host, node] : nodes) most = std::max(most, node.others());
  return most;
}

}  // namespace lockstep
