// A thread that monitors the ranks of this node. A death is detected within a fraction of a second and reported by
// rank, whatever MPI call the survivors wait in. A hang is detected although the rank is alive.
//
// It detects deaths through pidfds, and hangs through the records of runtime/watch/rank_status. Other nodes are
// monitored through runtime/link/node_link. If a container gives each rank its own PID namespace, ranks cannot see each
// other die, and the launcher ends the job.
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

// What counts as progress of a rank.
enum class ProgressBy : std::uint8_t {
  marks,           // the marks in its record (rank_status); detects endless loops, too
  marks_and_time,  // also CPU time of its main thread: for programs with long phases without marks
};

struct WatchOptions {
  double hang_timeout_seconds = 0;  // 0: no hang timeout
  ProgressBy progress = ProgressBy::marks;
};

class Watcher {
 public:
  // Collective over `world`, called by the main thread. `node` contains the ranks of this node, `host` is its name.
  // Call after failure_report::set_rank. From here on, a rank that ends while its watcher exists ends the job, and so
  // does a rank without progress. One of the other ranks writes failure.json and names the rank, and all exit at once.
  // On SIGUSR2 the rank prints what it is doing.
  //
  // Launchers send SIGTERM to survivors. A rank then ends once the cause has been reported, or once all ranks know that
  // each of them received SIGTERM, so that none has died. It ends after two seconds at the latest. If a rank ended
  // earlier, mpirun would send SIGKILL to the others at once. If `signals` records SIGTERM, SIGTERM ends no rank and
  // only wakes the watcher. `signals` must outlive this.
  Watcher(const Communicator& world, const Communicator& node, std::string host, ProcessSignals& signals,
          const WatchOptions& options);
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  // Marks this rank as done: it may end now, and no longer watches.
  ~Watcher();

 private:
  // A rank of this node, including this one.
  struct Watched {
    int rank = 0;  // in the world communicator
    int process = 0;
    bool is_visible = false;             // in this rank's PID namespace, and not this rank
    std::unique_ptr<Descriptor> handle;  // pidfd; -1 if the system has none
    StallTimer stall;
    StallTimer device_stall;
    bool has_ended() const;
  };
  void find_ranks(const Communicator& world, const Communicator& node);
  void watch();
  int period_ms() const;
  void report_if_dead(int node_rank);
  void check_progress();
  void publish_main_thread_time();
  void check_other_nodes(NodeLink::Urgency urgency);
  void note_sigterm();
  bool node_has_received_sigterm() const;
  bool all_have_received_sigterm();
  void end_by_sigterm();
  double timeout_seconds() const;
  std::vector<RankView> views_of_node(double waking_seconds);
  void print_status() const;
  [[noreturn]] void end_job(int code, int signal, const RankFailure& finding);

  std::string host_;
  ProcessSignals& signals_;
  WatchOptions options_;
  int world_size_;
  int node_rank_;
  NodeBoard board_;
  NodeLink link_;
  std::vector<Watched> ranks_;  // by rank on the node
  clockid_t main_thread_time_ = 0;
  Stopwatch since_look_;
  std::optional<Stopwatch> since_terminate_;  // since SIGTERM was received
  bool has_left_ = false;                     // this node has said goodbye to the others
  Descriptor wake_;                           // an eventfd
  std::thread thread_;
};

}  // namespace lockstep
