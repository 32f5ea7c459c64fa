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
#include "network/onnx/onnx_network.hpp"
#include "preflight/measure.hpp"
#include "preflight/report.hpp"
#include "recipe/fields.hpp"
#include "runtime/failure/contained_failure.hpp"

using namespace lockstep;

namespace {

constexpr NumberRange<std::int64_t> counts{1, std::int64_t{1} << 20};

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
    app.option_defaults()->group("Checks");
    app.add_option("--output", output, "Folder that the job will write to, or a folder above it")
        ->capture_default_str()
        ->type_name("FOLDER");
    app.add_option("--model", model, "Network whose steps and gradient sums are measured: " + known_models())
        ->capture_default_str()
        ->type_name("NAME")
        ->check(CLI::Validator(known_models()));
    add_number(app, "--image-size", image_size, counts, "Height and width of the input")->type_name("PIXELS");
    add_number(app, "--batch", batch, counts, "Samples per rank and step")->type_name("SAMPLES");
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
    app.final_callback([this, &app] {
      if (floors.empty()) return;
      try {
        require_distinct_files(app);
        use_settings(app, read_floors(floors).settings);
      } catch (const Error& error) {
        throw CLI::ValidationError(error.what());  // rank 0 alone prints it
      }
    });
  }
  DeviceOptions device_options() const { return lockstep::device_options(settings.recipe, settings.run); }
  double hang_timeout_seconds() const { return hang_timeout; }

  // The options that the measured values depend on. `auto` becomes the device in use.
  nlohmann::json measured_settings(const ClusterFacts& facts) const {
    nlohmann::json values = nlohmann::json::object();
    for (const MeasuredSetting& setting : list_settings()) values[setting.name] = setting.value(*this);
    if (values["device"] == "auto") values["device"] = facts.ranks.front().gpu.empty() ? "cpu" : "cuda";
    return values;
  }

 private:
  struct MeasuredSetting {
    std::string name;  // of the option, without dashes
    std::function<nlohmann::json(const CheckOptions&)> value;
    std::function<std::string(CheckOptions&, const nlohmann::json&)> set;  // returns why it cannot
  };

  static MeasuredSetting count_setting(const std::string& name, std::int64_t CheckOptions::*member) {
    return {name, [member](const CheckOptions& options) { return options.*member; },
            [member](CheckOptions& options, const nlohmann::json& value) -> std::string {
              if (!value.is_number_unsigned() || value == 0 || value > counts.most) return "it is not a valid number";
              options.*member = value.get<std::int64_t>();
              return "";
            }};
  }

  static std::vector<MeasuredSetting> list_settings() {
    std::vector<MeasuredSetting> list = {{"model", [](const CheckOptions& options) { return options.model; },
                                          [](CheckOptions& options, const nlohmann::json& value) -> std::string {
                                            if (!value.is_string()) return "it is not the name of a model";
                                            options.model = value.get<std::string>();
                                            return "";
                                          }},
                                         count_setting("image-size", &CheckOptions::image_size),
                                         count_setting("batch", &CheckOptions::batch)};
    for (const Field& field : training_fields()) {
      const bool is_measured = field.group == FieldGroup::device || field.group == FieldGroup::reduction;
      if (!is_measured || field.name == "plan-folder" || field.name == "verbose") continue;
      list.push_back({field.name, [&field](const CheckOptions& options) { return json_of(field, options.settings); },
                      [&field](CheckOptions& options, const nlohmann::json& value) {
                        return set_from_json(field, options.settings, value);
                      }});
    }
    return list;
  }

  // Floors hold only for the settings with which they were measured. A job script that checks first gives none.
  void use_settings(const CLI::App& app, const nlohmann::json& stored) {
    const std::vector<MeasuredSetting> known = list_settings();
    for (const auto& [name, value] : stored.items()) {
      const auto setting = std::ranges::find(known, name, &MeasuredSetting::name);
      require(setting != known.end(), Failure::usage,
              "'{}' has the unknown setting '{}'. Write the file again with --write-floors.", floors.string(),
              printable(name));
      if (app.count("--" + name) > 0) {
        const nlohmann::json own = setting->value(*this);
        require(own == value, Failure::usage,
                "the floors in '{}' were measured with --{} {}, but this check has {}. Leave out --{} to use the "
                "setting of the file, or choose another file (--floors).",
                floors.string(), name, json_text(value), json_text(own), name);
        continue;
      }
      const std::string fault = setting->set(*this, value);
      require(fault.empty(), Failure::usage,
              "'{}': the setting '{}' cannot be used: {}. Write the file again with "
              "--write-floors.",
              floors.string(), name, fault);
    }
  }
};

// Called on rank 0.
ClusterDiagnosis tell(const ClusterFacts& facts, const CheckOptions& options, const Floors& floors) {
  if (floors.settings.is_null() && (floors.samples_per_second > 0 || floors.bus_bytes_per_second > 0)) {
    log::warning(
        "'{}' does not state the settings with which its floors were measured. They are compared with those of {} at "
        "{} samples per rank. To store the settings, write the file again with --write-floors.",
        options.floors.string(), options.model, options.batch);
  }
  const std::vector<ClusterFinding> findings = judge(facts, floors);
  const ClusterDiagnosis verdict = diagnosis_of(findings, facts);
  log::plain(cluster_table(facts) + findings_text(findings));
  if (!options.json.empty()) {
    write_file_atomically(options.json, json_text(cluster_json(facts, findings, verdict)) + "\n");
  }
  if (!options.new_floors.empty()) {
    Floors measured = floors_below(facts);
    measured.settings = options.measured_settings(facts);
    write_file_atomically(options.new_floors, floors_text(measured));
  }
  if (verdict.code == 0) log::info(verdict.sentence);
  return verdict;
}

Ending check(Session& session, const CheckOptions& options) {
  const Floors floors = options.floors.empty() ? Floors{} : read_floors(options.floors);
  constexpr std::int64_t colors = 3;
  constexpr std::int64_t classes = 1000;
  ModelOptions model{options.model, {options.image_size, options.image_size, colors}, classes};
  if (is_onnx_path(options.model)) {
    const OnnxNetwork network = read_onnx_network(options.model, ValueShape{options.image_size, options.image_size, 0});
    model.classes = network.graph.nodes().back().shape.channels;
  }
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
