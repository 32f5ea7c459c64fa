#include "slurm/submit/cluster_gpus.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/error.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "slurm/submit/sbatch_arguments.hpp"
#include "slurm/submit/submission.hpp"

namespace lockstep {
namespace {

// Of several options of a kind, sinfo uses the last, as sbatch does.
constexpr const char* ask_sinfo = R"shell(partition=${1:-${SBATCH_PARTITION:-}}
shift
options=()
[ -z "$partition" ] || options+=("--partition=$partition")
[ -z "${SBATCH_CLUSTERS:-}" ] || options+=("--clusters=$SBATCH_CLUSTERS")
exec timeout --kill-after=5 20 sinfo --noheader --format='%P %G' "${options[@]}" "$@" 2>/dev/null
)shell";

}  // namespace

bool has_gpus(std::string_view resources) {
  while (!resources.empty()) {
    const std::size_t end = std::min(resources.find(','), resources.size());
    const std::string_view name = resources.substr(0, std::min(resources.find(':'), end));
    if (name == "gpu") return true;
    resources.remove_prefix(std::min(resources.size(), end + 1));
  }
  return false;
}

void require_gpus(const JobFile& job, const std::vector<std::string>& sbatch_arguments, const SiteProfile& site) {
  std::int64_t most = 0;
  std::string advice;
  for (const Role& role : job.roles) {
    if (role.gpus > 0) advice += fmt::format(" --set taskRoles.{}.resourcePerInstance.gpu=0", role.name);
    most = std::max(most, role.gpus);
  }
  if (most == 0) return;
  std::vector<std::string> words = {"bash", "-c", ask_sinfo, "submit_job", site.partition};
  std::ranges::copy_if(sbatch_arguments, std::back_inserter(words),
                       [](const std::string& word) { return names_partition(word) || names_cluster(word); });
  std::set<std::string> partitions;
  bool found = false;
  const int code = run_with_input(words, "", [&](const std::string& line) {
    if (line.starts_with("CLUSTER: ")) return;
    const std::size_t space = std::min(line.find(' '), line.size());
    partitions.insert(line.substr(0, std::min(line.find('*'), space)));
    found = found || has_gpus(std::string_view(line).substr(std::min(space + 1, line.size())));
  });
  if (code != 0 || partitions.empty() || found) return;
  throw Error(Failure::usage,
              fmt::format("the job requests {} a task, but the cluster has none (sinfo, partition {}). To use CPUs "
                          "instead, add{}. Nothing was submitted.",
                          counted(most, "GPU"), printable(fmt::format("{}", fmt::join(partitions, ", "))), advice));
}

}  // namespace lockstep
