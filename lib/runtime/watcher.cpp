#include "runtime/watcher.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "runtime/failure_report.hpp"

namespace lockstep {

// What a rank has said of itself, in memory of its node.
struct alignas(64) RankState {
  static constexpr int running = 0;
  static constexpr int done = -1;
  static constexpr int death_told = -2;  // by a survivor; positive: the code that the rank itself reported
  std::atomic<int> word;
};

namespace {

// The kernel's status of a process that ended and is not yet collected by its parent, as waitpid() would give it: the
// last field of /proc/PID/stat (proc(5), exit_code).
std::optional<int> status_of_ended(int process) {
  try {
    constexpr std::size_t longest = 4096;
    const std::string text = read_file(fmt::format("/proc/{}/stat", process), longest);
    const std::size_t name_end = text.rfind(") ");
    if (name_end == std::string::npos || text.compare(name_end + 2, 1, "Z") != 0) return std::nullopt;
    const std::size_t last = text.find_last_of(' ') + 1;
    int status = 0;
    if (std::from_chars(text.data() + last, text.data() + text.size(), status).ec != std::errc{}) return std::nullopt;
    return status;
  } catch (const Error&) {
    return std::nullopt;  // collected already
  }
}

bool is_gone(int process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

struct Death {
  int signal = 0;
  std::string words;
};

Death describe_death(int process) {
  const std::optional<int> status = status_of_ended(process);
  if (!status) return {0, "was killed or ended without a word"};
  if (WIFSIGNALED(*status)) {
    const int signal = WTERMSIG(*status);
    return {signal, fmt::format("was killed by signal {} ({})", signal, ::strsignal(signal))};
  }
  return {0, fmt::format("ended with code {} before the job was done", WEXITSTATUS(*status))};
}

}  // namespace

Watcher::Watcher(const Communicator& world, std::string host)
    : node_rank_(world.local_rank()), host_(std::move(host)), stop_request_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const Communicator node = world.node();
  if (node.size() == 1) return;
  std::string reason;
  states_ = SharedSegment::create(node, node.size() * std::int64_t{sizeof(RankState)}, reason);
  require(states_ != nullptr, Failure::other, "cannot watch over the ranks: cannot have {}. Enlarge /dev/shm.", reason);
  failure_report::share_code(state_of(node_rank_).word);

  const std::vector<std::string> processes = node.all_gather(fmt::format("{} {}", world.rank(), ::getpid()));
  for (int rank = 0; rank < node.size(); ++rank) {
    if (rank == node_rank_) continue;
    Watched other{};
    std::sscanf(processes[static_cast<std::size_t>(rank)].c_str(), "%d %d", &other.rank, &other.process);
    other.node_rank = rank;
    other.handle = std::make_unique<Descriptor>(static_cast<int>(::syscall(SYS_pidfd_open, other.process, 0)));
    others_.push_back(std::move(other));
  }
  // Signals are the main thread's.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { watch(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watcher::~Watcher() {
  if (!thread_.joinable()) return;
  failure_report::stop_sharing_code();
  state_of(node_rank_).word.store(RankState::done);
  ::eventfd_write(stop_request_, 1);
  thread_.join();
}

bool Watcher::Watched::has_ended() const {
  if (*handle < 0) return is_gone(process) || status_of_ended(process).has_value();
  pollfd look{*handle, POLLIN, 0};
  return ::poll(&look, 1, 0) > 0;
}

void Watcher::watch() const {
  std::vector<const Watched*> alive;
  for (const Watched& other : others_) alive.push_back(&other);
  const bool has_all_handles = std::ranges::all_of(others_, [](const Watched& other) { return *other.handle >= 0; });
  constexpr int look_again_ms = 100;  // where the system has no pidfds
  while (true) {
    std::vector<pollfd> handles{{stop_request_, POLLIN, 0}};
    for (const Watched* other : alive) handles.push_back({*other->handle, POLLIN, 0});
    ::poll(handles.data(), handles.size(), has_all_handles ? -1 : look_again_ms);
    if ((handles[0].revents & POLLIN) != 0) return;
    std::erase_if(alive, [&](const Watched* other) {
      if (!other->has_ended()) return false;
      judge(*other);
      return true;
    });
  }
}

// Returns if the rank was done.
void Watcher::judge(const Watched& ended) const {
  int word = RankState::running;
  if (state_of(ended.node_rank).word.compare_exchange_strong(word, RankState::death_told)) {
    const Death death = describe_death(ended.process);
    const std::string sentence = fmt::format(
        "rank {} on {} {} (no rank can go on without it). Look for its last words, and at the node's memory.",
        ended.rank, host_, death.words);
    failure_report::write_of(ended.rank, {1, death.signal, sentence});
    log::error(sentence);
    ::_exit(1);
  }
  if (word == RankState::done) return;
  ::_exit(word > 0 ? word : 1);
}

RankState& Watcher::state_of(int node_rank) const {
  return *std::launder(reinterpret_cast<RankState*>(states_->data()) + node_rank);
}

}  // namespace lockstep
