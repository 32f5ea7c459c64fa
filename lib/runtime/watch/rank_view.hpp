// One rank's view of another: a copy of its record, plus what only an observer can determine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/watch/rank_status.hpp"

namespace lockstep {

// For a device that marks its sums.
struct DeviceView {
  SumMarks marks{};
  double stalled_seconds = 0;  // since its last mark

  bool is_summing() const { return marks.begun > marks.ended; }
};

struct RankView {
  int rank = 0;
  std::string host;
  int code = RankStatus::running;
  Team team;
  Phase phase = Phase::starting;
  std::int64_t step = -1;            // counted from 0; -1 before the first
  std::int64_t sum = 0;              // gradient sums begun
  std::vector<std::int32_t> shards;  // being read
  char process_state = '?';          // ProcessStat::state; '?' if it was not read, or cannot be seen
  double stalled_seconds = 0;        // time without progress
  std::optional<DeviceView> device;  // none if the host computes the sums

  bool is_stopped() const { return process_state == 'T' || process_state == 't'; }
};

RankView view_of(const RankStatus& status, int rank, const std::string& host);

// "waiting for data at step 412, reading shard 'x.h5'", "summing gradients at step 412, the GPU in sum 1648 (bucket 2)"
std::string describe_place(const RankView& view);
std::string describe_host(const RankView& view);  // without the device's part
// "in sum 1648 (bucket 2), after computing for 3.2 ms": by the device's own clock
std::string describe_device(const DeviceView& device);
// "rank 3", "ranks 0, 2-5"
std::string describe_ranks(std::vector<int> ranks);
// "12 s", "0.3 s"
std::string format_seconds(double seconds);

// Serialization of views to one line of text for another node, and back. `host` is the sending node's name. Throws
// Error(other) on text that no rank writes.
std::string to_text(std::span<const RankView> views);
std::vector<RankView> views_from_text(std::string_view text, const std::string& host);

}  // namespace lockstep
