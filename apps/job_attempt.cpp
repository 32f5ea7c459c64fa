// Called by slurm/job.sh when an attempt begins and when it has ended. Records what happened, and prints what to do as
// lines of `key value`. See slurm/attempts.md.
//
//   job_attempt begin --attempts train-17.attempts.jsonl --log train-17.out --checkpoints runs/17/checkpoints
//   job_attempt end   --attempts ... --code 137 --verdict train-17.0.json --job-state RUNNING
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "job/job_environment.hpp"
#include "job/time_limit.hpp"
#include "launch/number_option.hpp"
#include "launch/run_outside_ranks.hpp"
#include "run/exit_report.hpp"
#include "slurm/node_list.hpp"
#include "slurm/retry/attempt_ledger.hpp"
#include "slurm/retry/evidence.hpp"
#include "slurm/retry/hold.hpp"

using namespace lockstep;

namespace {

constexpr std::int64_t max_attempts = 1'000'000;
constexpr std::int64_t max_memory_mib = 999'999'999;

enum class Moment : std::uint8_t { begin, end };

struct AttemptOptions {
  Moment moment = Moment::begin;
  AttemptContext context;
  RetryPolicy policy;
  std::string hold;
  std::filesystem::path rules;
  AttemptFacts facts;
  std::filesystem::path exit_report;
  std::int64_t memory_per_node = 0;
  std::int64_t memory_per_cpu = 0;
  std::string required_nodes;
  std::string excluded_nodes;
  std::string partition_nodes;

  void declare(CLI::App& app) {
    app.description(
        "Decides how an attempt of a job begins, and whether the job is retried afterwards. Used by job.sh.");
    app.require_subcommand(1);
    declare_both(*app.add_subcommand("begin", "Before the ranks start"));
    CLI::App* const end = app.add_subcommand("end", "After the ranks have ended");
    end->callback([this] { moment = Moment::end; });
    declare_both(*end);
    declare_end(*end);
  }

 private:
  void declare_both(CLI::App& app) {
    app.add_option("--attempts", context.attempts_file, "The job's attempts.jsonl")->required()->type_name("FILE");
    app.add_option("--log", context.log, "The job's log")->required()->type_name("FILE");
    app.add_option("--checkpoints", context.checkpoints, "Folder of the program's checkpoints, if known")
        ->type_name("DIR");
    add_number(app, "--retry-count", policy.retry_count, {retry_every_end, max_attempts},
               "Maximum number of counted retries (JOB_RETRY_COUNT); -1: no limit; -2: retry also after success");
    add_number(app, "--attempt-limit", policy.attempt_limit, {1, max_attempts},
               "Maximum number of attempts, for any cause (LOCKSTEP_ATTEMPT_LIMIT)");
    app.add_option("--hold-on-failure", hold,
                   "How long the job keeps its nodes after a failure (LOCKSTEP_HOLD_ON_FAILURE)")
        ->type_name("TIME");
    app.add_flag_callback(
        "--stop-for-good", [this] { facts.stop_request = StopRequest::for_good; },
        "A stop without retry was requested (stop_job)");
    app.add_option("--rules", rules, "The user's retry rules (LOCKSTEP_RETRY_RULES)")->type_name("FILE");
  }
  void declare_end(CLI::App& app) {
    add_number(app, "--code", facts.launcher_code, {0, 255}, "Exit code of the launcher");
    app.add_option("--verdict", exit_report, "Exit report of the attempt")->type_name("FILE");
    app.add_option("--job-state", facts.job_state, "Job state, from squeue")->type_name("STATE");
    app.add_option("--state-reason", facts.state_reason, "Reason of the state, from squeue")->type_name("REASON");
    add_number(app, "--restarts", facts.restarts, {0, max_attempts}, "Restart count, from squeue");
    app.add_option("--accounting", facts.accounting, "Output of sacct -nP -o jobid,state")->type_name("TEXT");
    add_number(app, "--mem", memory_per_node, {0, max_memory_mib}, "Requested memory per node, in MiB; 0: not given");
    add_number(app, "--mem-per-cpu", memory_per_cpu, {0, max_memory_mib}, "Requested memory per CPU, in MiB");
    app.add_option("--required-nodes", required_nodes, "Nodes of --nodelist")->type_name("LIST");
    app.add_option("--excluded-nodes", excluded_nodes, "Nodes of --exclude")->type_name("LIST");
    app.add_option("--partition-nodes", partition_nodes, "All nodes of the partition")->type_name("LIST");
  }
};

void say(std::string_view key, const std::string& value) { log::plain(fmt::format("{} {}", key, printable(value))); }

// Parses Slurm's node list. Returns an empty list if it is invalid, because a job must be able to end.
std::vector<std::string> nodes_in(const std::string& list) {
  try {
    return expand_node_list(list == "(null)" ? "" : list);
  } catch (const Error& error) {
    log::warning(error.what());
    return {};
  }
}

AttemptContext complete(AttemptContext context) {
  const std::optional<SlurmJob>& job = this_job().slurm;
  require(job.has_value(), Failure::usage,
          "job_attempt needs a Slurm job, but SLURM_JOB_ID is not set. Only job scripts call it.");
  context.job = job->id;
  context.attempt = job->restarts;
  for (const SlurmJob::Component& component : job->components) {
    for (const std::string& node : nodes_in(component.node_list)) {
      if (std::ranges::find(context.nodes, node) == context.nodes.end()) context.nodes.push_back(node);
    }
  }
  context.now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  return context;
}

void begin(const AttemptOptions& options) {
  const AttemptStart beginning = begin_attempt(complete(options.context), options.policy, options.facts.stop_request);
  say("action", beginning.refusal ? "stop" : "run");
  if (beginning.refusal) say("code", number_text(beginning.refusal->code));
  say("resume", beginning.resume == Resume::newest ? "auto" : "as_given");
  say("sentence", beginning.sentence);
}

// The srun options that select the node of the program that failed first; empty if it is unknown.
std::string place_to_look_at(const AttemptFacts& facts, const SlurmJob& job) {
  const std::string host = facts.exit_report ? facts.exit_report->host : "";
  for (std::size_t part = 0; part < job.components.size(); ++part) {
    const std::vector<std::string> nodes = nodes_in(job.components[part].node_list);
    if (std::ranges::find(nodes, host) == nodes.end()) continue;
    const std::string group = job.components.size() > 1 ? fmt::format("--het-group={} ", part) : "";
    return fmt::format("{}--nodelist={}", group, host);
  }
  return "";
}

void finish(const AttemptOptions& options, const RetryRules& rules) {
  const AttemptContext context = complete(options.context);
  AttemptFacts facts = options.facts;
  facts.exit_report = read_exit_report(options.exit_report);
  constexpr std::size_t longest = 1 << 16;
  facts.oom_kills = oom_kills(read_live_file("/proc/self/cgroup", longest), "/sys/fs/cgroup", context.job);
  if (options.memory_per_node > 0) facts.memory = {options.memory_per_node, "--mem"};
  if (options.memory_per_cpu > 0) facts.memory = {options.memory_per_cpu, "--mem-per-cpu"};
  AttemptConditions conditions;
  const bool is_heterogeneous = this_job().slurm->components.size() > 1;
  conditions.nodes_wanted =
      is_heterogeneous ? static_cast<std::int64_t>(context.nodes.size()) : this_job().slurm->nodes.value_or(1);
  conditions.nodes_of_partition = nodes_in(options.partition_nodes);
  conditions.nodes_required = nodes_in(options.required_nodes);
  conditions.nodes_avoided = nodes_in(options.excluded_nodes);
  if (options.policy.hold_seconds > 0)
    conditions.seconds_left = TimeLimit(std::nullopt, this_job().slurm).seconds_left();
  std::random_device random;
  const double jitter = random() / (static_cast<double>(std::random_device::max()) + 1);
  const AttemptEnd end = end_attempt(context, facts, rules, conditions, options.policy, jitter);
  say("cause", row_of(end.finding.cause).name);
  say("kind", choice_name(retry_kinds, end.finding.kind));
  say("code", number_text(end.finding.code));
  say("sentence", end.finding.sentence);
  say("action", choice_name(retry_actions, end.decision.action));
  if (!end.decision.sentence.empty()) say("next", end.decision.sentence);
  say("transient_retries", number_text(end.decision.transient_retries));
  say("counted_retries", number_text(end.decision.counted_retries));
  if (end.decision.hold_seconds > 0) {
    say("hold_seconds", number_text(end.decision.hold_seconds));
    say("place", place_to_look_at(facts, *this_job().slurm));
  }
  if (end.decision.delay_seconds > 0) say("delay", number_text(end.decision.delay_seconds));
  if (!end.finding.bad_nodes.empty()) say("avoid", fmt::format("{}", fmt::join(end.decision.avoided, ",")));
}

}  // namespace

int main(int argc, char** argv) {
  return run_outside_ranks<AttemptOptions>(argc, argv, [](AttemptOptions options) {
    if (!options.hold.empty()) options.policy.hold_seconds = parse_hold(options.hold);
    const RetryRules rules = options.rules.empty() ? RetryRules() : read_retry_rules(options.rules);
    if (options.moment == Moment::end) {
      finish(options, rules);
    } else {
      begin(options);
    }
    return 0;
  });
}
