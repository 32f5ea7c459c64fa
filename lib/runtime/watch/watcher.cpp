#include "runtime/watch/watcher.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "runtime/failure/failure_report.hpp"
#include "runtime/watch/process_end.hpp"
#include "runtime/watch/wake.hpp"

namespace lockstep {

namespace {

constexpr int running = RankStatus::running;
constexpr int done = RankStatus::done;
constexpr int last_turns_ms = 20;  // polling interval after SIGTERM
// The ranks of a team report its hangs, in their own folder and with their own shard names. Other ranks report only if
// the team cannot.
constexpr double for_other_teams_seconds = 10;

bool is_gone(int process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

struct Death {
  int code = 1;
  int signal = 0;
  std::string message;
};

Death describe_death(int process, int pidfd) {
  const std::optional<int> status = status_of_ended(process, pidfd);
  if (!status) return {1, 0, "was killed or ended without a word"};
  if (WIFSIGNALED(*status)) {
    const int signal = WTERMSIG(*status);
    return {1, signal, fmt::format("was killed by SIG{}", ::sigabbrev_np(signal))};
  }
  const int code = WEXITSTATUS(*status);
  return {std::max(code, 1), 0, fmt::format("exited with code {} before the job was complete", code)};
}

// The thread blocks all signals, because they are for the main thread.
std::thread start_without_signals(const std::function<void()>& work) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(work);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Watcher::Watcher(const Communicator& world, const Communicator& node, std::string host, ProcessSignals& signals,
                 const WatchOptions& options)
    : host_(std::move(host)),
      signals_(signals),
      options_(options),
      world_size_(world.size()),
      node_rank_(node.rank()),
      board_(node),
      link_(world, node, host_),
      wake_(make_wake()) {
  find_ranks(world, node);
  ::pthread_getcpuclockid(::pthread_self(), &main_thread_time_);
  rank_status::move_to(&board_.status(node_rank_));
  failure_report::share({&board_.report_state(), &board_.status(node_rank_).code});
  signals_.start_waking(wake_,
                        world_size_ > 1 ? WakingSignals::print_status_and_terminate : WakingSignals::print_status);
  thread_ = start_without_signals([this] { watch(); });
  ::pthread_setname_np(thread_.native_handle(), "watcher");  // the name in top -H and /proc
}

Watcher::~Watcher() {
  failure_report::share({});
  board_.status(node_rank_).code = done;
  wake(wake_, Wake::stop);
  thread_.join();
  link_.leave();
  signals_.stop_waking();
  rank_status::move_to(nullptr);
}

void Watcher::find_ranks(const Communicator& world, const Communicator& node) {
  const std::int64_t name_space = pid_namespace();
  const std::vector<std::string> processes =
      node.all_gather(fmt::format("{} {} {}", world.rank(), ::getpid(), name_space));
  for (int rank = 0; rank < node.size(); ++rank) {
    Watched other;
    std::int64_t its_name_space = 0;
    std::istringstream(processes[static_cast<std::size_t>(rank)]) >> other.rank >> other.process >> its_name_space;
    other.is_visible = rank != node_rank_ && its_name_space == name_space;
    const int pidfd = other.is_visible ? static_cast<int>(::syscall(SYS_pidfd_open, other.process, 0)) : -1;
    other.handle = std::make_unique<Descriptor>(pidfd);
    ranks_.push_back(std::move(other));
  }
}

bool Watcher::Watched::has_ended() const {
  if (*handle < 0) return is_gone(process) || status_of_ended(process, *handle).has_value();
  pollfd look{*handle, POLLIN, 0};
  return ::poll(&look, 1, 0) > 0;
}

// The interval between checks for what wakes no poll(). -1 if there is none.
int Watcher::period_ms() const {
  constexpr int without_pidfds = 100;
  constexpr int longest = 1000;
  if (std::ranges::any_of(ranks_, [](const Watched& rank) { return rank.is_visible && *rank.handle < 0; })) {
    return without_pidfds;
  }
  if (options_.hang_timeout_seconds == 0) return link_.is_used() ? longest : -1;
  return static_cast<int>(std::clamp(options_.hang_timeout_seconds * 1e3 / 20, 20.0, 1.0 * longest));
}

void Watcher::watch() {
  std::vector<int> alive;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (ranks_[static_cast<std::size_t>(rank)].is_visible) alive.push_back(rank);
  }
  int timeout_ms = period_ms();
  since_look_ = Stopwatch();
  while (true) {
    std::vector<pollfd> handles{{wake_, POLLIN, 0}};
    for (const int rank : alive) handles.push_back({*ranks_[static_cast<std::size_t>(rank)].handle, POLLIN, 0});
    link_.add_handles(handles);
    ::poll(handles.data(), handles.size(), timeout_ms);
    const Wakes wakes = read_wakes(wake_);
    if (wakes.stop) return;
    if (wakes.terminate && !since_terminate_) {
      note_sigterm();
      timeout_ms = last_turns_ms;
    }
    if (wakes.print_status) print_status();
    link_.serve();
    std::erase_if(alive, [&](int rank) {
      if (!ranks_[static_cast<std::size_t>(rank)].has_ended()) return false;
      report_if_dead(rank);
      return true;
    });
    check_other_nodes(since_terminate_ ? NodeLink::Urgency::last_chance : NodeLink::Urgency::may_wait);
    if (since_terminate_ && signals_.terminate_only_wakes()) end_by_sigterm();
    check_progress();
  }
}

void Watcher::note_sigterm() {
  since_terminate_.emplace();
  board_.status(node_rank_).sigterm_receivers = SigtermReceivers::itself;
}

bool Watcher::node_has_received_sigterm() const {
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    const RankStatus& status = board_.status(rank);
    if (status.sigterm_receivers == SigtermReceivers::none && status.code == running) return false;
  }
  return true;
}

// Each node says goodbye once its ranks have received SIGTERM, and rank 0's node once all others have left. Rank 0's
// goodbye tells the node leaders to end, and each of them passes it on to its node.
bool Watcher::all_have_received_sigterm() {
  std::atomic<SigtermReceivers>& first = board_.status(0).sigterm_receivers;
  if (node_rank_ != 0) return first == SigtermReceivers::all;
  if (!node_has_received_sigterm()) return false;
  const int ranks_elsewhere = world_size_ - static_cast<int>(ranks_.size());
  const bool others_have_left = link_.have_left(ranks_elsewhere);
  if ((others_have_left || !link_.is_hub()) && !std::exchange(has_left_, true)) link_.leave();
  if (others_have_left) first = SigtermReceivers::all;
  return others_have_left;
}

// Returns if there is something to wait for.
void Watcher::end_by_sigterm() {
  constexpr double patience = 2;  // longer than mpirun's delay from SIGTERM to SIGKILL
  if (!all_have_received_sigterm() && since_terminate_->seconds() < patience) return;
  if (node_has_received_sigterm()) board_.status(node_rank_).code = done;  // so that nobody reports a death
  if (!std::exchange(has_left_, true)) link_.leave();
  signals_.stop_waking();
  ::kill(::getpid(), SIGTERM);
}

// Returns if the rank was done.
void Watcher::report_if_dead(int node_rank) {
  const int code = board_.status(node_rank).code;
  if (code == done) return;
  if (code != running) ::_exit(code);  // it has reported its failure
  const Watched& ended = ranks_[static_cast<std::size_t>(node_rank)];
  const Death death = describe_death(ended.process, *ended.handle);
  end_job(death.code, death.signal,
          {ended.rank, host_,
           fmt::format("rank {} on {} {}. The other ranks cannot continue without it. Check its last messages and the "
                       "memory of the node.",
                       ended.rank, host_, death.message)});
}

// The watcher of the rank without progress may report first; it works unless its process is stopped. Between nodes,
// rank 0 reports first, because it sees most, and the others follow if it cannot.
double Watcher::timeout_seconds() const {
  constexpr double turn_seconds = 2;
  constexpr int turns = 4;
  const int turn = node_rank_ + (link_.is_used() && !link_.is_hub() ? 1 : 0);
  return options_.hang_timeout_seconds + turn_seconds * std::min(turn, turns);
}

void Watcher::check_progress() {
  const double period_seconds = period_ms() / 1e3;
  const double seconds = since_look_.seconds();
  if (period_seconds < 0 || seconds < 0.9 * period_seconds) return;
  since_look_ = Stopwatch();
  const double waking_seconds = std::min(seconds, 2 * period_seconds);
  std::vector<RankView> views = views_of_node(waking_seconds);
  link_.send_views(views, waking_seconds);
  if (options_.hang_timeout_seconds == 0) return;
  const std::vector<RankView> others = link_.others();
  views.insert(views.end(), others.begin(), others.end());
  const Team own = view_of(board_.status(node_rank_), 0, host_).team;
  for (const TeamInView& team : teams_in_view(views, world_size_)) {
    const double patience = timeout_seconds() + (team.team == own ? 0 : for_other_teams_seconds);
    if (const std::optional<RankFailure> hang = find_hang(team.views, patience, team.coverage)) {
      end_job(static_cast<int>(Failure::out_of_step), 0, *hang);
    }
  }
  if (const std::optional<RankFailure> lost = link_.find_lost_heartbeat(options_.hang_timeout_seconds)) {
    end_job(static_cast<int>(Failure::out_of_step), 0, *lost);
  }
}

void Watcher::check_other_nodes(NodeLink::Urgency urgency) {
  if (const std::optional<RankFailure> death = link_.find_death(urgency)) {
    end_job(failure_report::reported_code().value_or(1), 0, *death);
  }
}

// A stopped process shows no CPU time, because its watcher is stopped, too.
void Watcher::publish_main_thread_time() {
  if (options_.progress != ProgressBy::marks_and_time) return;
  timespec time{};
  if (::clock_gettime(main_thread_time_, &time) != 0) return;
  board_.status(node_rank_).main_thread_ns = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::vector<RankView> Watcher::views_of_node(double waking_seconds) {
  rank_status::copy_device_marks();  // a neighbor therefore sees them one period later
  publish_main_thread_time();
  std::vector<RankView> views;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    Watched& watched = ranks_[static_cast<std::size_t>(rank)];
    const RankStatus& status = board_.status(rank);
    watched.stall.look(progress_of(status), waking_seconds);
    watched.device_stall.look(progress_of(status.device), waking_seconds);
    RankView view = view_of(status, watched.rank, host_);
    view.stalled_seconds = watched.stall.seconds();
    if (view.device) view.device->stalled_seconds = watched.device_stall.seconds();
    // The only check that needs a system call, so it is skipped while the rank makes progress.
    if (watched.is_visible && view.stalled_seconds > options_.hang_timeout_seconds / 2) {
      view.process_state = process_stat(watched.process).value_or(ProcessStat{}).state;
    }
    views.push_back(std::move(view));
  }
  return views;
}

void Watcher::print_status() const {
  rank_status::copy_device_marks();
  const RankStatus& status = board_.status(node_rank_);
  const Watched& self = ranks_[static_cast<std::size_t>(node_rank_)];
  const double seconds = static_cast<double>(monotonic_ns() - status.since_ns) / 1e9;
  const RankView view = view_of(status, self.rank, host_);
  log::warning("is {}, for {}{}", describe_host(view), format_seconds(seconds),
               view.device ? "; its GPU is " + describe_device(*view.device) : "");
}

void Watcher::end_job(int code, int signal, const RankFailure& finding) {
  if (failure_report::write_of(finding.rank, finding.host, {code, signal, finding.sentence})) {
    log::error(finding.sentence);
  } else {
    // Another survivor is writing. A launcher that sees this rank end would interrupt it.
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  // Tells the other nodes that they need not look for a cause.
  if (since_terminate_ && signals_.terminate_only_wakes()) link_.leave();
  board_.status(node_rank_).code = code;
  ::_exit(code);
}

}  // namespace lockstep
