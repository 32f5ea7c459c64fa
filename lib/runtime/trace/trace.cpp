#include "runtime/trace/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/trace/trace_text.hpp"

namespace lockstep {
namespace {

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw system_failure(fmt::format("cannot write to '{}'", folder.string()), error.value(), Access::writing,
                         "--trace");
  }
}

// Collective.
ClockOffset begin(const Communicator& world, const std::filesystem::path& folder) {
  on_rank_0(world, [&] { make_folder(folder); });
  rank_status::enter(Phase::meeting);
  return measure_offset(world);
}

}  // namespace

std::size_t spans_kept(int ranks) {
  constexpr int of_all = 1 << 19;  // 16 MiB on rank 0, and a file of 60 MB
  return static_cast<std::size_t>(std::clamp(of_all / ranks, 1 << 10, 1 << 17));
}

Trace::Trace(const Communicator& world, std::filesystem::path folder, std::string host)
    : world_(world),
      folder_(std::move(folder)),
      host_(std::move(host)),
      spans_(spans_kept(world.size())),
      first_(begin(world, folder_)),
      shown_(&spans_) {}

void Trace::write(std::int64_t steps) {
  rank_status::enter(Phase::gathering);  // also ends the previous span
  const ClockOffset last = measure_offset(world_);
  const std::vector<std::string> of_ranks =
      world_.gather(packed({host_, spans_.spans(), spans_.lost(), first_, last}), 0);
  if (world_.rank() != 0) return;
  rank_status::enter(Phase::saving);
  std::vector<RankSpans> ranks;
  for (const std::string& bytes : of_ranks) ranks.push_back(unpacked(bytes));
  try {
    make_folder(folder_);
    const std::filesystem::path file = folder_ / fmt::format("trace-{}.json", steps);
    const bool is_other = !is_absent(file);
    write_file_atomically(file, trace_text(ranks));
    if (is_other) {
      log::warning(
          "'{}' from an earlier attempt or another training is overwritten. To keep both, set a different --trace "
          "folder for each training.",
          file.string());
    }
  } catch (const Error& error) {
    log::warning("{} This attempt has no trace. Its results are not affected.", error.what());
  }
}

}  // namespace lockstep
