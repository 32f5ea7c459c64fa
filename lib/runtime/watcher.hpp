// A thread that watches the other ranks of this node, so that a death is known within a fraction of a second and by
// name, whatever MPI call the survivors wait in.
//
// It sees processes, not progress: a rank that hangs is alive. A node that goes down as a whole leaves nobody to see
// it, nor do ranks of one node that a container puts into process name spaces of their own; there the launcher ends the
// job.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "comm/communicator.hpp"
#include "comm/shared_segment.hpp"

namespace lockstep {

class Watcher {
 public:
  // Collective over `world`. `host` is this node's name. Call after failure_report::set_rank. From here on the end of a
  // rank whose watcher lives ends the job: one survivor of the node writes failure.json and says which rank died, all
  // exit at once. SIGTERM, which launchers send to survivors, waits until the death that caused it is told.
  Watcher(const Communicator& world, std::string host);
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  // Says that this rank is done; it may end now, and no longer watches.
  ~Watcher();

 private:
  struct Watched {
    int rank;  // of the world
    int process;
    int node_rank;
    std::unique_ptr<Descriptor> handle;  // pidfd; -1 where the system has none
    bool has_ended() const;
  };
  void find_others(const Communicator& world, const Communicator& node);
  void watch() const;
  void judge(const Watched& ended) const;
  std::atomic<int>& told() const;
  std::atomic<int>& code_of(int node_rank) const;

  std::string host_;
  int node_rank_;
  std::unique_ptr<SharedSegment> segment_;  // told, then the code of each rank of the node
  std::vector<Watched> others_;
  Descriptor wake_;  // eventfd
  std::thread thread_;
};

}  // namespace lockstep
