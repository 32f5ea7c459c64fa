#include "launch/gpu_ranks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "backend/backend.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/number.hpp"
#include "launch/help_request.hpp"
#include "recipe/field.hpp"

namespace lockstep {
namespace {

constexpr std::string_view gpus_option = "--gpus";
constexpr NumberRange<std::int64_t> gpu_counts{1, 1024};

// Returns 0 for `all`.
std::optional<std::size_t> parse_gpus(std::string_view text) {
  if (text == "all") return 0;
  const std::optional<std::int64_t> count = parse_number(text, gpu_counts);
  return count ? std::optional(static_cast<std::size_t>(*count)) : std::nullopt;
}

// The last value of an option, "--name value" or "--name=value"; empty if it is not given.
std::string value_of(const std::vector<std::string>& words, std::string_view name) {
  std::string value;
  for (std::size_t index = 1; index < words.size(); ++index) {
    const std::string_view word = words[index];
    if (word == name && index + 1 < words.size()) value = words[index + 1];
    if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) value = word.substr(name.size() + 1);
  }
  return value;
}

std::vector<std::string> without(const std::vector<std::string>& words, std::string_view name) {
  std::vector<std::string> kept;
  for (std::size_t index = 0; index < words.size(); ++index) {
    const std::string_view word = words[index];
    if (word == name) ++index;
    if (word != name && !(word.starts_with(name) && word.substr(name.size()).starts_with('='))) kept.emplace_back(word);
  }
  return kept;
}

void require_gpus(std::string_view asked, std::size_t wanted, std::size_t visible) {
  require(visible > 0, Failure::usage,
          "{} {}: no GPU can be used here, but one rank is started per GPU. To train on the CPU, remove {}. --device "
          "cuda shows why there is none.",
          gpus_option, asked, gpus_option);
  require(wanted <= visible, Failure::usage, "{} {}: only {} can be used here, one per rank. Use {} all.", gpus_option,
          asked, visible == 1 ? "1 GPU" : fmt::format("{} GPUs", visible), gpus_option);
}

// Refuses several nodes, because mpirun would spread the ranks over all nodes of an allocation.
void require_one_node(const JobEnvironment& job) {
  const std::int64_t nodes = job.slurm ? job.slurm->nodes.value_or(1) : 1;
  require(nodes == 1, Failure::usage,
          "{} is for one node, but this job has {} nodes. Ranks would start on all of them. Use srun with one task per "
          "GPU instead.",
          gpus_option, nodes);
}

std::size_t count_visible() { return visible_gpus().size(); }

}  // namespace

void declare_gpus(CLI::App& app, std::string& gpus) {
  const auto check = [](const std::string& text) -> std::string {
    if (!parse_gpus(text)) return not_a_number_message(text, gpu_counts) + " or 'all'";
    const Launcher launcher = this_job().launcher;
    if (launcher == Launcher::none) return "";
    return fmt::format("this program is already a rank of {}, which starts one rank per GPU. Remove {}",
                       launcher_name(launcher), gpus_option);
  };
  app.add_option(std::string(gpus_option), gpus,
                 "Without a launcher: start this many ranks with mpirun, one per GPU of this node")
      ->check(CLI::Validator(check, "", "gpus"))
      ->type_name("COUNT|all")
      ->group(heading_of(FieldGroup::batch));
}

std::vector<std::string> arguments_for_gpus(const std::vector<std::string>& words,
                                            const std::function<std::size_t()>& count, const JobEnvironment& job) {
  const std::string asked = value_of(words, gpus_option);
  const std::optional<std::size_t> parsed = parse_gpus(asked);
  if (!parsed || job.launcher != Launcher::none || help_request(words)) return {};
  const std::string device = value_of(words, "--device");
  require(device != "cpu", Failure::usage, "{} {} conflicts with --device cpu, which uses no GPUs. Remove one of them.",
          gpus_option, asked);
  const std::size_t visible = count();
  const std::size_t wanted = *parsed == 0 ? visible : *parsed;
  require_gpus(asked, wanted, visible);
  if (wanted == 1) return {};
  require_one_node(job);
  // One rank for each GPU, whatever the number of cores. Without binding, each rank can use its share of all cores.
  std::vector<std::string> launch = {"mpirun", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(wanted)};
  const std::vector<std::string> program = without(words, gpus_option);
  launch.insert(launch.end(), program.begin(), program.end());
  return launch;
}

std::optional<int> spread_over_gpus(int argc, char** argv, const std::function<std::size_t()>& count) {
  std::vector<std::string> words(argv, argv + argc);
  try {
    std::error_code unknown;  // argv[0] may be a name that is found only through PATH
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
    if (!unknown) words.at(0) = program;
    std::vector<std::string> launch = arguments_for_gpus(words, count, this_job());
    if (launch.empty()) return std::nullopt;
    std::vector<char*> pointers;
    pointers.reserve(launch.size() + 1);
    for (std::string& word : launch) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    // Set as variables because Open MPI 5 refuses mpirun --quiet. After Ctrl-C, the ranks have three seconds between
    // SIGTERM and SIGKILL. mpirun waits twice as long whenever ranks end with an error code, so a longer time would
    // delay every usage error.
    ::setenv("OMPI_MCA_odls_base_sigkill_timeout", "3", 0);
    // So the program's last sentence is the last line. Open MPI 5 knows no such setting.
    ::setenv("OMPI_MCA_orte_execute_quiet", "1", 0);
    ::execvp(pointers[0], pointers.data());
    throw Error(Failure::usage, fmt::format("cannot start mpirun: {}. {} starts the ranks with it. Check that Open "
                                            "MPI's launcher is in PATH (Debian: openmpi-bin).",
                                            system_error_message(errno), gpus_option));
  } catch (const Error& error) {
    log::error(error.what());
    return error.exit_code();
  }
}

std::optional<int> spread_over_gpus(int argc, char** argv) { return spread_over_gpus(argc, argv, count_visible); }

}  // namespace lockstep
