#include "runtime/watcher.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/failure_report.hpp"
#include "runtime/process_end.hpp"

namespace lockstep {

namespace {

// What a rank has said of itself; a positive number is the code of a failure that it reported.
constexpr int running = 0;
constexpr int done = -1;

bool is_gone(int process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

struct Death {
  int code = 1;
  int signal = 0;
  std::string words;
};

Death describe_death(int process, int pidfd) {
  const std::optional<int> status = status_of_ended(process, pidfd);
  if (!status) return {1, 0, "was killed or ended without a word"};
  if (WIFSIGNALED(*status)) {
    const int signal = WTERMSIG(*status);
    return {1, signal, fmt::format("was killed by SIG{}", ::sigabbrev_np(signal))};
  }
  const int code = WEXITSTATUS(*status);
  return {std::max(code, 1), 0, fmt::format("ended with code {} before the job was done", code)};
}

// A number of a process means something only in its own name space.
std::int64_t process_name_space() {
  struct stat entry {};
  return ::stat("/proc/self/ns/pid", &entry) == 0 ? static_cast<std::int64_t>(entry.st_ino) : 0;
}

constexpr eventfd_t stop_request = 1;
constexpr eventfd_t terminate_request = 1 << 20;
std::atomic<int> wake_on_terminate = -1;  // a signal handler reaches nothing but globals

void on_terminate(int) { ::eventfd_write(wake_on_terminate, terminate_request); }

void handle_terminate(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

Watcher::Watcher(const Communicator& world, std::string host)
    : host_(std::move(host)), node_rank_(world.local_rank()), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const Communicator node = world.node();
  if (node.size() == 1) return;
  std::string reason;
  segment_ = SharedSegment::create(node, (1 + node.size()) * std::int64_t{sizeof(std::atomic<int>)}, reason);
  require(segment_ != nullptr, Failure::other, "cannot watch over the ranks: cannot have {}. Enlarge /dev/shm.",
          reason);
  failure_report::share({&told(), &code_of(node_rank_)});
  find_others(world, node);

  wake_on_terminate = wake_;
  handle_terminate(on_terminate);
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
  failure_report::share({});
  code_of(node_rank_) = done;
  ::eventfd_write(wake_, stop_request);
  thread_.join();
  handle_terminate(SIG_DFL);
}

void Watcher::find_others(const Communicator& world, const Communicator& node) {
  const std::int64_t name_space = process_name_space();
  const std::vector<std::string> processes =
      node.all_gather(fmt::format("{} {} {}", world.rank(), ::getpid(), name_space));
  for (int rank = 0; rank < node.size(); ++rank) {
    Watched other{};
    std::int64_t its_name_space = 0;
    std::istringstream(processes[static_cast<std::size_t>(rank)]) >> other.rank >> other.process >> its_name_space;
    if (rank == node_rank_ || its_name_space != name_space) continue;
    other.node_rank = rank;
    other.handle = std::make_unique<Descriptor>(static_cast<int>(::syscall(SYS_pidfd_open, other.process, 0)));
    others_.push_back(std::move(other));
  }
}

bool Watcher::Watched::has_ended() const {
  if (*handle < 0) return is_gone(process) || status_of_ended(process, *handle).has_value();
  pollfd look{*handle, POLLIN, 0};
  return ::poll(&look, 1, 0) > 0;
}

void Watcher::watch() const {
  constexpr int look_again_ms = 100;  // where the system has no pidfds
  constexpr int last_look_ms = 200;   // after SIGTERM: a launcher sends it at the moment it sees a death
  std::vector<const Watched*> alive;
  alive.reserve(others_.size());
  for (const Watched& other : others_) alive.push_back(&other);
  int timeout_ms = -1;
  if (std::ranges::any_of(others_, [](const Watched& other) { return *other.handle < 0; })) timeout_ms = look_again_ms;
  while (true) {
    std::vector<pollfd> handles{{wake_, POLLIN, 0}};
    for (const Watched* other : alive) handles.push_back({*other->handle, POLLIN, 0});
    const bool is_last_look = timeout_ms == last_look_ms;
    const int events = ::poll(handles.data(), handles.size(), timeout_ms);
    eventfd_t requests = 0;
    if (::eventfd_read(wake_, &requests) == 0 && requests % terminate_request != 0) return;
    if (requests >= terminate_request) timeout_ms = last_look_ms;
    std::erase_if(alive, [&](const Watched* other) {
      if (!other->has_ended()) return false;
      judge(*other);
      return true;
    });
    if (is_last_look && events == 0) {
      handle_terminate(SIG_DFL);
      ::kill(::getpid(), SIGTERM);
    }
  }
}

// Returns if the rank was done.
void Watcher::judge(const Watched& ended) const {
  const int code = code_of(ended.node_rank);
  if (code == done) return;
  if (code != running) ::_exit(code);  // it has said everything
  const Death death = describe_death(ended.process, *ended.handle);
  const std::string sentence =
      fmt::format("rank {} on {} {} (no rank can go on without it). Look for its last words, and at the node's memory.",
                  ended.rank, host_, death.words);
  if (failure_report::write_of(ended.rank, {death.code, death.signal, sentence})) {
    log::error(sentence);
  } else {
    // Another survivor is writing, and a launcher that sees this one go would cut it short.
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  ::_exit(death.code);
}

std::atomic<int>& Watcher::told() const { return *std::launder(reinterpret_cast<std::atomic<int>*>(segment_->data())); }

std::atomic<int>& Watcher::code_of(int node_rank) const { return (&told())[1 + node_rank]; }

}  // namespace lockstep
