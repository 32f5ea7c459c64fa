#include "slurm/submit/job_file.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/printable.hpp"
#include "slurm/roles/training_folders.hpp"
#include "slurm/submit/job_array.hpp"
#include "slurm/submit/job_commands.hpp"
#include "slurm/submit/job_fields.hpp"
#include "slurm/submit/job_nodes.hpp"
#include "slurm/submit/job_plugins.hpp"
#include "slurm/submit/job_roles.hpp"
#include "slurm/submit/job_ssh.hpp"
#include "slurm/submit/job_storages.hpp"
#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

constexpr std::size_t longest_name = 255;

bool is_job_name(std::string_view text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !text.empty() && text.size() <= longest_name && text.find_first_not_of(letters) == std::string_view::npos;
}

std::vector<std::string> options_of(const std::vector<JobChange>& changes) {
  std::vector<std::string> options;
  for (const JobChange& change : changes) options.push_back(change.option);
  return options;
}

// Reads the sections of a job file in order.
class JobFileReader {
 public:
  JobFileReader(YamlValue root, const std::string& name, const std::vector<JobChange>& changes, const SiteProfile& site)
      : root_(std::move(root)), reader_(name, options_of(changes)) {
    change_job(reader_, changes, root_);
    context_.site = site;
  }

  JobFile read() {
    check_version();
    reader_.check_fields(root_, job_fields::job(), "a job");
    read_header();
    if (const YamlValue* const all = find_value(root_, "prerequisites")) {
      context_.prerequisites = read_prerequisites(reader_, *all);
      warn_of_images();
    }
    read_values({"parameters", parameter_variable, job_.parameters});
    read_values({"secrets", secret_variable, job_.secrets});
    read_defaults();
    read_extras();
    const YamlValue& roles = needed("taskRoles");
    for (const YamlEntry& role : reader_.map(roles, "taskRoles")) {
      job_.roles.push_back(read_role(reader_, context_, role));
    };
    if (job_.roles.empty()) reader_.refuse(roles.line, "'taskRoles' has no role");
    check_deployments(roles);
    check_all(roles.line);
    check_nodes(reader_, job_, nodes_, roles.line);
    warn_of_unknown_folder(roles.line);
    job_.array = read_job_array(reader_, root_, job_);
    check_ssh(reader_, job_, roles.line);
    job_.warnings = reader_.take_warnings();
    return std::move(job_);
  }

 private:
  const YamlValue& needed(std::string_view field) const {
    const YamlValue* const value = find_value(root_, field);
    if (value == nullptr)
      reader_.refuse(root_.line, fmt::format("the job has no field '{}', which is required", field));
    return *value;
  }

  // Jobs of version 1 are JSON, and do not state it.
  void check_version() const {
    const YamlValue* const version = find_value(root_, "protocolVersion");
    const bool is_first = version == nullptr ? root_.find("jobName") != nullptr : version->text == "1";
    if (!is_first) return;
    reader_.refuse(version == nullptr ? root_.line : version->line,
                   "this is a job of protocol version 1, but submit_job reads version 2. Write it as a job of version "
                   "2, field by field as in the table of job_files.md, 'Jobs of protocol version 1'");
  }

  void read_header() {
    const YamlValue& version = needed("protocolVersion");
    reader_.number(version, "protocolVersion (only version 2 is supported)", 2, 2);
    const YamlValue& type = needed("type");
    if (reader_.text(type, "type") != "job") reader_.refuse(type.line, "'type' is not 'job'");
    const YamlValue& name = needed("name");
    job_.name = reader_.text(name, "name");
    if (!is_job_name(job_.name)) {
      reader_.refuse(name.line,
                     fmt::format("the job name is not valid. Use 1 to {} letters, digits, '_' and '-'", longest_name));
    }
    if (const YamlValue* const count = find_value(root_, "jobRetryCount")) {
      job_.job_retry_count = reader_.number(*count, "jobRetryCount", 0, max_retries);
    }
  }

  void warn_of_images() {
    if (!context_.site.container.empty()) return;
    for (const auto& [key, image] : context_.prerequisites) {
      if (key.first != "dockerimage") continue;
      reader_.warn(image->line,
                   fmt::format("the Docker image '{}' is ignored, so its programs must be on the nodes. To run it, set "
                               "'container' and 'image.NAME' in the site profile",
                               printable(key.second)));
    }
  }

  void warn_of_unknown_folder(int line) {
    if (context_.retries_tasks || !job_.output.empty() || !training_folders(job_.roles).is_unknown) return;
    reader_.warn(
        line,
        "the commands do not show where the training writes its checkpoints, so retries cannot tell whether an "
        "attempt made progress. Write the folder as 'output' of extras.lockstep");
  }

  struct Section {
    std::string name;
    std::string_view variable;  // prefix of their names
    std::map<std::string, std::string>& variables;
  };

  void read_values(const Section& section) {
    const YamlValue* const all = find_value(root_, section.name);
    if (all == nullptr) return;
    reader_.map(*all, section.name);
    read_value(section, "", *all);
  }

  // Nested values of a map or a list become values of their own: train.lr, layers.0.
  void read_value(const Section& section, const std::string& path, const YamlValue& value) {
    for (const YamlEntry& one : value.entries) {
      if (!is_job_name(one.key)) {
        reader_.refuse(one.line, fmt::format("'{}' in {} is not a valid name. Use 1 to {} letters, digits, '_' and '-'",
                                             printable(one.key), section.name, longest_name));
      }
      read_value(section, path + "." + one.key, one.value);
    }
    for (std::size_t place = 0; place < value.items.size(); ++place) {
      read_value(section, fmt::format("{}.{}", path, place), value.items[place]);
    }
    if (value.kind == YamlValue::Kind::map || value.kind == YamlValue::Kind::list) return;
    const std::string text = value.kind == YamlValue::Kind::text ? value.text : "";
    std::string variable = path.substr(1);
    std::ranges::replace_if(
        variable, [](char letter) { return letter == '.' || letter == '-'; }, '_');
    variable.insert(0, section.variable);
    if (!section.variables.emplace(variable, text).second) {
      reader_.refuse(
          value.line,
          fmt::format("two of the {} would set the variable '{}', because '-' and '.' become '_'. Rename one of them",
                      section.name, variable));
    }
    context_.references.values[fmt::format("${}{}", section.name, path)] = {text, variable, section.name == "secrets"};
  }

  void read_defaults() {
    const YamlValue* const defaults = find_value(root_, "defaults");
    if (defaults == nullptr) return;
    reader_.check_fields(*defaults, job_fields::defaults(), "defaults");
    if (const YamlValue* const cluster = find_value(*defaults, "virtualCluster")) {
      job_.virtual_cluster = reader_.text(*cluster, "virtualCluster");
      if (!is_job_name(job_.virtual_cluster)) {
        reader_.refuse(cluster->line,
                       "'virtualCluster' is not a valid partition name. Use letters, digits, '_' and '-'");
      }
      if (job_.virtual_cluster == "default") job_.virtual_cluster.clear();
    }
    if (const YamlValue* const deployment = find_value(*defaults, "deployment")) find_deployment(*deployment);
  }

  void find_deployment(const YamlValue& wanted) {
    const std::string& name = reader_.text(wanted, "deployment");
    const YamlValue* const all = find_value(root_, "deployments");
    if (all != nullptr) {
      for (const YamlValue& one : reader_.list(*all, "deployments")) {
        const YamlValue* const own = find_value(one, "name");
        if (own != nullptr && own->text == name) context_.deployment = &one;
      }
    }
    if (context_.deployment == nullptr) {
      reader_.refuse(wanted.line,
                     fmt::format("'defaults' selects the deployment '{}', which does not exist", printable(name)));
    }
  }

  void check_all(int line) const {
    try {
      check_roles(job_.roles);
    } catch (const Error& error) {
      const std::string_view message = error.what();
      reader_.refuse(line, message.substr(0, message.find_last_not_of('.') + 1));
    }
  }

  // Checks all deployments; one is used.
  void check_deployments(const YamlValue& roles) {
    const YamlValue* const all = find_value(root_, "deployments");
    if (all == nullptr) return;
    for (const YamlValue& one : reader_.list(*all, "deployments")) {
      reader_.check_fields(one, job_fields::deployment(), "a deployment");
      if (find_value(one, "name") == nullptr) reader_.refuse(one.line, "a deployment has no 'name'");
      const YamlValue* const deployed = find_value(one, "taskRoles");
      if (deployed == nullptr) continue;
      for (const YamlEntry& role : reader_.map(*deployed, "taskRoles of a deployment")) {
        if (roles.find(role.key) == nullptr) {
          reader_.refuse(role.line,
                         fmt::format("a deployment has commands for the role '{}', which the job does not have",
                                     printable(role.key)));
        }
        reader_.check_fields(role.value, job_fields::deployed_role(), "a role of a deployment");
      }
    }
  }

  void read_extras() {
    const YamlValue* const extras = find_value(root_, "extras");
    if (extras == nullptr) return;
    reader_.check_fields(*extras, job_fields::extras(), "extras");
    const YamlEntry* const mail = extras->find("jobStatusChangeNotification");
    if (mail != nullptr && mail->value.kind != YamlValue::Kind::nothing && !context_.site.sends_mail) {
      reader_.warn(
          mail->line,
          "'jobStatusChangeNotification' is ignored, because Slurm sends the mail. Set 'mail_type' in the site "
          "profile, or pass --mail-type=BEGIN,END,FAIL,REQUEUE after '--'");
    }
    context_.retries_tasks = starts_independently(reader_, root_);
    if (const YamlValue* const own = find_value(*extras, "lockstep")) read_own(*own);
    if (const YamlValue* const list = find_value(*extras, "storages")) {
      read_storage_list(reader_, context_.site, *list, context_.storages);
    }
    const YamlValue* const plugins = find_value(*extras, "com.microsoft.pai.runtimeplugin");
    if (plugins == nullptr) return;
    context_.plugins = read_plugins(reader_, *plugins, needed("taskRoles"));
    job_.has_ssh = std::ranges::any_of(context_.plugins, &PluginCommands::has_ssh);
    for (const YamlValue& plugin : plugins->items) {
      if (find_value(plugin, "plugin")->text == "teamwise_storage") {
        read_storage_plugin(reader_, context_.site, plugin, context_.storages);
      }
    }
  }

  void read_own(const YamlValue& own) {
    reader_.check_fields(own, job_fields::lockstep(), "extras.lockstep");
    if (const YamlValue* const output = find_value(own, "output")) {
      job_.output = reader_.text(*output, "output");
      if (job_.output.find("<%") != std::string::npos) {
        reader_.refuse(
            output->line,
            "'output' has a reference (<% %>), but only commands may have references. Write the path of the folder");
      }
    }
    nodes_ = find_value(own, "nodes");
    if (nodes_ != nullptr) job_.nodes = reader_.number(*nodes_, "nodes", 1, max_instances);
    const YamlValue* const world = find_value(own, "world");
    if (world == nullptr) return;
    const YamlValue& roles = needed("taskRoles");
    for (const YamlValue& role : reader_.list(*world, "world")) {
      const std::string& name = reader_.text(role, "a role of the world");
      if (roles.find(name) == nullptr) {
        reader_.refuse(role.line,
                       fmt::format("'world' names the role '{}', which the job does not have", printable(name)));
      }
      context_.world.insert(name);
    }
  }

  YamlValue root_;
  JobReader reader_;
  JobFile job_;
  const YamlValue* nodes_ = nullptr;  // extras.lockstep.nodes, if the file states it
  JobContext context_;
};

}  // namespace

JobFile parse_job_file(const std::string& text, const std::string& name, const std::vector<JobChange>& changes,
                       const SiteProfile& site) {
  return JobFileReader(parse_yaml(text, name), name, changes, site).read();
}

JobFile read_job_file(const std::filesystem::path& path, const std::vector<JobChange>& changes,
                      const SiteProfile& site) {
  return parse_job_file(read_file(path, yaml_limits::bytes), path.string(), changes, site);
}

}  // namespace lockstep
