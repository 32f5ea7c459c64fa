// A thread that watches the ranks of this node, so that a death is known within a fraction of a second and by name,
// whatever MPI call the survivors wait in; and so that a rank that hangs is known, though it is alive.
//
// It sees deaths through process descriptors, hangs through the records of runtime/watch/rank_status, and what happens
// on other nodes through runtime/link/node_link. Where a container gives each rank a process name space of its own,
// ranks do not see each other die, and the launcher ends the job.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/io/descriptor.hpp"
#include "comm/communicator.hpp"
#include "runtime/link/node_link.hpp"
#include "runtime/stop/process_signals.hpp"
#include "runtime/watch/hang.hpp"
#include "runtime/watch/node_board.hpp"
#include "runtime/watch/rank_view.hpp"

namespace lockstep {

// How a rank shows that it gets on.
enum class ProgressBy : std::uint8_t {
  marks,           // by what it marks in its record (rank_status): then one that waits for ever is found, too
  marks_and_time,  // also by processor time of its main thread: for programs with long phases that mark nothing
};

struct WatchOptions {
  double hang_timeout_seconds = 0;  // 0: a rank may stand still for ever
  ProgressBy progress = ProgressBy::marks;
};

class Watcher {
 public:
  // Collective over `world`, by the main thread; `node` holds the ranks of this node, `host` is its name. Call after
  // failure_report::set_rank. From here on a rank that ends while its watcher lives ends the job, and so does a rank
  // that stands still: one of the others writes failure.json and says who it is, and all exit at once. SIGUSR2 makes
  // the rank say where it is.
  //
  // Launchers send SIGTERM to survivors. It ends a rank when the cause has been told, or when all ranks of the job know
  // that each of them was sent one, so that none has died; after two seconds at the latest. A rank that ends earlier
  // may cost the others their lives, for mpirun then sends SIGKILL at once. Where `signals`, which outlive this, note
  // SIGTERM, it ends nobody and only makes the watcher look.
  Watcher(const Communicator& world, const Communicator& node, std::string host, ProcessSignals& signals,
          const WatchOptions& options);
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  // Says that this rank is done; it may end now, and no longer watches.
  ~Watcher();

 private:
  // A rank of this node, this one included.
  struct Watched {
    int rank = 0;  // of the world
    int process = 0;
    bool is_visible = false;             // in this rank's process name space, and not this rank
    std::unique_ptr<Descriptor> handle;  // pidfd; -1 where the system has none
    Stillness stillness;
    Stillness device_stillness;
    bool has_ended() const;
  };
  void find_ranks(const Communicator& world, const Communicator& node);
  void watch();
  int period_ms() const;
  void judge(int node_rank);
  void look_around();
  void show_main_thread_time();
  void look_for_deaths_elsewhere(NodeLink::Urgency urgency);
  void begin_to_end();
  bool node_is_told_to_end() const;
  bool all_are_told_to_end();
  void end_by_terminate();
  double patience_seconds() const;
  std::vector<RankView> look_at_node(double waking_seconds);
  void say_where() const;
  [[noreturn]] void end_job(int code, int signal, const Blame& finding);

  std::string host_;
  ProcessSignals& signals_;
  WatchOptions options_;
  int world_size_;
  int node_rank_;
  NodeBoard board_;
  NodeLink link_;
  std::vector<Watched> ranks_;  // by rank of the node
  clockid_t main_thread_time_ = 0;
  Stopwatch since_look_;
  std::optional<Stopwatch> since_terminate_;  // SIGTERM has come
  bool has_left_ = false;                     // this node, as far as others know
  Descriptor wake_;                           // eventfd
  std::thread thread_;
};

}  // namespace lockstep
