#include "launch/local_gpus.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "job/job_environment.hpp"
#include "runtime/failure/contained_failure.hpp"

namespace lockstep {
namespace {

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace

LocalGpus gather_local_gpus(const Communicator& world, const std::vector<std::string>& seen_here) {
  LocalGpus gpus;
  for (const std::string& text : world.node().all_gather(joined_lines(seen_here))) gpus.push_back(lines_of(text));
  return gpus;
}

void require_alike(int ranks_with_gpu, int ranks) {
  require(ranks_with_gpu == 0 || ranks_with_gpu == ranks, Failure::usage,
          "{} of {} ranks see a GPU. With --device auto, all ranks use a GPU or none does. Start the job where every "
          "rank has one, or use --device cpu.",
          ranks_with_gpu, ranks);
}

void require_no_granted_gpus(const std::string& granted, const NoGpu& none) {
  require(granted.empty(), none.failure,
          "Slurm granted this rank GPUs ({}), but {}. To compute on the CPU, use --device cpu.", printable(granted),
          none.reason);
}

bool peers_are_hidden(const LocalGpus& gpus) {
  const auto sees_one = [](const std::vector<std::string>& seen) {
    return seen.size() == 1 && !seen[0].starts_with("MIG-");
  };
  if (gpus.size() < 2 || !std::ranges::all_of(gpus, sees_one)) return false;
  std::set<std::string> different;
  for (const std::vector<std::string>& seen : gpus) different.insert(seen[0]);
  return different.size() == gpus.size();
}

void place_on_node(const Communicator& world, DeviceOptions& device) {
  device.local_rank = world.local_rank();
  device.local_size = world.local_size();
  if (device.name == "cpu") return;
  const std::vector<std::string> seen = visible_gpus();
  if (device.name == "auto") {
    on_all_ranks(world, [&] {
      if (seen.empty()) require_no_granted_gpus(this_job().granted_gpus, why_no_gpu());
    });
    require_alike(static_cast<int>(world.sum(seen.empty() ? 0 : 1)), world.size());
  }
  device.local_gpus = gather_local_gpus(world, seen);
  if (world.local_rank() == 0 && peers_are_hidden(device.local_gpus)) {
    log::warning(
        "each rank sees only its own GPU, as with --gpus-per-task. Gradients may then go through the host instead of "
        "from GPU to GPU. Use --gpus-per-node with --gpu-bind=none.");
  }
}

}  // namespace lockstep
