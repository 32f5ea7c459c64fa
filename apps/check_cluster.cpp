// Checks a cluster before an expensive job. In half a minute it finds slow nodes and wrong clocks. It also checks that
// all-reduces are correct and fast, and that there is space for checkpoints.
//
//   mpirun -n 8 --hostfile nodes check_cluster --output runs
//   srun --mpi=pmix check_cluster --output runs --write-floors floors.json     while the cluster is known to be healthy
//   srun --mpi=pmix check_cluster --output runs --floors floors.json           ends with 71 if nodes are at fault
#include <algorithm>

#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "launch/field_options.hpp"
#include "launch/number_option.hpp"
#include "launch/result_options.hpp"
#include "launch/run.hpp"
#include "preflight/measure.hpp"
#include "preflight/report.hpp"
#include "runtime/failure/contained_failure.hpp"

using namespace lockstep;

namespace {

struct CheckOptions {
  std::filesystem::path output = ".";
  std::string model = "resnet18";
  std::int64_t image_size = 32;
  std::int64_t batch = 32;
  std::filesystem::path floors;
  std::filesystem::path new_floors;
  std::filesystem::path json;
  double hang_timeout = 60;
  Settings settings;  // of the device and the all-reduce

  void declare(CLI::App& app) {
    app.description(
        "Checks the nodes of a job before it starts: computing speed, clocks, network, all-reduces, and space for two "
        "checkpoints. Exit code: 71 if nodes are at fault, which it names; 1 for other problems; else 0.");
    constexpr NumberRange<std::int64_t> count{1, std::int64_t{1} << 20};
    app.option_defaults()->group("Checks");
    app.add_option("--output", output, "Folder that the job will write to, or a folder above it")
        ->capture_default_str()
        ->type_name("FOLDER");
    app.add_option("--model", model, "Network whose steps and gradient sums are measured: " + known_models())
        ->capture_default_str()
        ->type_name("NAME")
        ->check(CLI::Validator(known_models()));
    add_number(app, "--image-size", image_size, count, "Height and width of the input")->type_name("PIXELS");
    add_number(app, "--batch", batch, count, "Samples per rank and step")->type_name("SAMPLES");
    app.add_option("--floors", floors, "File with minimum values, from --write-floors; the check fails below them")
        ->type_name("FILE");
    app.option_defaults()->group("Results");
    add_result(app, "--write-floors", new_floors, require_place_for_floors,
               "Write 80 % of the measured values to this file, as the minimum for later checks");
    add_result(app, "--json", json, require_place_for_cluster,
               "Write all measurements and findings to this file, as JSON");
    declare_fields(app, settings, {FieldGroup::device, FieldGroup::reduction});
    app.option_defaults()->group(heading_of(FieldGroup::monitoring));
    add_number(app, "--hang-timeout", hang_timeout, {0, 1e9},
               "End the check with 76 if a rank makes no progress for this long, and name it; 0: never")
        ->type_name("SECONDS");
    app.footer(
        "Examples:\n  mpirun -n 8 --hostfile nodes check_cluster --output runs\n"
        "  srun --mpi=pmix check_cluster --output runs --write-floors floors.json\n"
        "  srun --mpi=pmix check_cluster --output runs --floors floors.json");
  }
  DeviceOptions device_options() const { return lockstep::device_options(settings.recipe, settings.run); }
  double hang_timeout_seconds() const { return hang_timeout; }
};

// Called on rank 0.
ClusterDiagnosis tell(const ClusterFacts& facts, const CheckOptions& options, const Floors& floors) {
  const std::vector<ClusterFinding> findings = judge(facts, floors);
  const ClusterDiagnosis verdict = diagnosis_of(findings, facts);
  log::plain(cluster_table(facts) + findings_text(findings));
  if (!options.json.empty()) {
    write_file_atomically(options.json, json_text(cluster_json(facts, findings, verdict)) + "\n");
  }
  if (!options.new_floors.empty()) write_file_atomically(options.new_floors, floors_text(floors_below(facts)));
  if (verdict.code == 0) log::info(verdict.sentence);
  return verdict;
}

Ending check(Session& session, const CheckOptions& options) {
  const Floors floors = options.floors.empty() ? Floors{} : read_floors(options.floors);
  constexpr std::int64_t colors = 3;
  constexpr std::int64_t classes = 1000;
  const ModelOptions model{options.model, {options.image_size, options.image_size, colors}, classes};
  const ClusterFacts facts =
      measure_cluster(session, {model, options.batch, options.settings.run.sums.reducer, options.output});
  ClusterDiagnosis verdict;
  if (session.world.rank() == 0) verdict = tell(facts, options, floors);
  const bool is_bad = session.world.max(verdict.code) > 0;
  verdict.code = static_cast<int>(session.world.max(verdict.code));
  return is_bad ? Ending{verdict.code, verdict.sentence, verdict.hosts} : Ending{};
}

}  // namespace

int main(int argc, char** argv) { return run<CheckOptions>(argc, argv, check); }
