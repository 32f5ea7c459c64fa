#include "slurm/retry/attempt_facts.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"
#include "slurm/retry/text_cause.hpp"

namespace lockstep {
namespace {

constexpr int own_failure = static_cast<int>(Failure::other);

struct Sign {
  std::string_view message;
  Cause cause;
};

std::optional<Cause> first_sign(std::span<const Sign> signs, std::string_view text) {
  const auto found =
      std::ranges::find_if(signs, [&](const Sign& sign) { return text.find(sign.message) != text.npos; });
  return found == signs.end() ? std::nullopt : std::optional(found->cause);
}

// Messages that slurmstepd prints when it ends a job.
constexpr std::array<Sign, 3> signs_of_slurm{{{"DUE TO PREEMPTION ***", Cause::preempted},
                                              {"DUE TO NODE FAILURE", Cause::node_failure},
                                              {"DUE TO TIME LIMIT ***", Cause::time_limit}}};

// sacct's state of a whole job ("17|PREEMPTED", not "17.0|..."): launchers cancel steps too.
constexpr std::array<Sign, 6> signs_of_job{{{"|PREEMPTED", Cause::preempted},
                                            {"|NODE_FAIL", Cause::node_failure},
                                            {"|BOOT_FAIL", Cause::node_failure},
                                            {"|TIMEOUT", Cause::time_limit},
                                            {"|DEADLINE", Cause::time_limit},
                                            {"|CANCELLED", Cause::cancelled}}};

// slurmstepd's messages with JobAcctGatherParams=OverMemoryKill: "... exceeded memory limit (331444224 > 104857600)".
constexpr std::array<std::string_view, 2> over_limit{"exceeded memory limit (", "exceeded virtual memory limit ("};

// Messages used if the exit code is not specific: of Slurm, then of CUDA and the system. srun writes a reason in
// parentheses while it retries, and after a colon when it gives up.
constexpr std::array<Sign, 6> signs_of_memory{{{over_limit[0], Cause::out_of_memory},
                                               {over_limit[1], Cause::out_of_memory},
                                               {"Exceeded job memory limit", Cause::out_of_memory},
                                               {"oom_kill", Cause::out_of_memory},
                                               {"oom-kill", Cause::out_of_memory},
                                               {"Out Of Memory", Cause::out_of_memory}}};
constexpr std::array<Sign, 6> signs_of_failure{
    {{"CUDA_ERROR_ECC_UNCORRECTABLE", Cause::bad_node},
     {"uncorrectable ECC error", Cause::bad_node},
     {"srun: error: Node failure on ", Cause::node_failure},
     {"Address already in use", Cause::resource_conflict},
     {": Requested nodes are busy", Cause::resource_conflict},
     {": Requested partition configuration not available now", Cause::resource_conflict}}};

// squeue's states of a job that nobody has ended. SIGNALING: a signal is being delivered to the job.
constexpr std::array<std::string_view, 5> states_that_run{"RUNNING", "SIGNALING", "RESIZING", "SUSPENDED", "STOPPED"};

std::optional<Cause> cause_in_accounting(const std::string& accounting) {
  const std::string job = accounting.substr(0, accounting.find('\n'));
  if (accounting.find("|NODE_FAIL") != std::string::npos) return Cause::node_failure;
  return job.find('.') < job.find('|') ? std::nullopt : first_sign(signs_of_job, job);
}

// What Slurm, or a user through Slurm's commands, did to the job while the attempt ran.
std::optional<Cause> cause_in_slurm(const AttemptFacts& facts) {
  if (const std::optional<Cause> cause = cause_in_accounting(facts.accounting)) return cause;
  if (std::ranges::find(states_that_run, facts.job_state) != states_that_run.end()) return std::nullopt;
  if (facts.state_reason == "TimeLimit" || facts.job_state == "TIMEOUT") return Cause::time_limit;
  if (facts.job_state == "NODE_FAIL") return Cause::node_failure;
  const std::optional<Cause> told = first_sign(signs_of_slurm, facts.log_tail);
  if (facts.restarts > facts.attempt)
    return told == Cause::time_limit ? Cause::requeued : told.value_or(Cause::requeued);
  return told == Cause::time_limit ? Cause::time_limit : Cause::cancelled;
}

bool memory_ran_out(const AttemptFacts& facts) {
  return facts.oom_kills > 0 || facts.accounting.find("|OUT_OF_ME") != std::string::npos ||
         first_sign(signs_of_memory, facts.log_tail);
}

// In the error that a program of a role printed.
std::optional<Cause> cause_in_error(const AttemptFacts& facts) {
  const bool has_error = facts.exit_report && !facts.exit_report->error_line.empty();
  return has_error ? cause_in_line(facts.exit_report->error_line) : std::nullopt;
}

// The program's own cause if it is specific, else the signs in Slurm's records and the log.
Cause cause_of_failure(const AttemptFacts& facts, int code) {
  const Cause own = facts.exit_report && facts.exit_report->signal != 0 ? cause_of_signal(facts.exit_report->signal)
                                                                        : cause_of_code(code);
  if (row_of(own).kind != RetryKind::unknown || code == static_cast<int>(Failure::out_of_step)) return own;
  if (memory_ran_out(facts)) return Cause::out_of_memory;
  if (const std::optional<Cause> cause = cause_in_error(facts)) return *cause;
  return first_sign(signs_of_failure, facts.log_tail).value_or(own);
}

// "a step used 316 MiB of memory, more than its limit of 100 MiB", from the log; empty if it is not there.
std::string describe_over_limit(std::string_view log) {
  for (const std::string_view message : over_limit) {
    const std::size_t at = log.find(message);
    if (at == std::string_view::npos) continue;
    const std::string_view numbers = log.substr(at + message.size());
    constexpr std::string_view between = " > ";
    const std::size_t middle = numbers.find(between);
    const std::size_t end = numbers.find(')');
    if (middle == std::string_view::npos || end == std::string_view::npos || middle > end) continue;
    constexpr NumberRange<std::int64_t> bytes{0, std::int64_t{1} << 60};
    const auto used = parse_number<std::int64_t>(numbers.substr(0, middle), bytes);
    const std::size_t second = middle + between.size();
    const auto limit = parse_number<std::int64_t>(numbers.substr(second, end - second), bytes);
    if (used && limit) {
      return fmt::format("a step used {} MiB of memory, more than its limit of {} MiB", *used >> 20, *limit >> 20);
    }
  }
  return "";
}

// For a process that Slurm or the kernel killed.
std::string describe_memory(const AttemptFacts& facts) {
  const std::string over = describe_over_limit(facts.log_tail);
  const std::string request = facts.memory
                                  ? fmt::format("The job requested {} MiB with {}. Request more, or use less memory",
                                                facts.memory->mib, facts.memory->option)
                                  : "Request more with --mem or --mem-per-cpu, or use less memory";
  return fmt::format("{}. {}", over.empty() ? "a process was killed, because its memory was used up" : over, request);
}

// By the kernel or Slurm.
bool was_killed_for_memory(const AttemptFacts& facts, Cause cause, int code) {
  return cause == Cause::out_of_memory && code != static_cast<int>(Failure::out_of_memory) && memory_ran_out(facts);
}

std::string describe(const AttemptFacts& facts, Cause cause, int code) {
  if (was_killed_for_memory(facts, cause, code)) return describe_memory(facts);
  std::string text = row_of(cause).description;
  if (cause_in_error(facts) != cause) return text;
  text += fmt::format(" (the program printed '{}')", printable(facts.exit_report->error_line));
  return cause == Cause::disk_full && facts.disk_was_full ? text + ", as it was on the previous attempt's nodes" : text;
}

std::string sentence_of(const AttemptFacts& facts, Cause cause, int code) {
  const std::string description = describe(facts, cause, code);
  if (!facts.exit_report) return code == 0 ? description : fmt::format("{} (code {})", description, code);
  const bool adds = code == own_failure || cause != cause_of_code(code);
  return adds ? fmt::format("{}: {}", description, facts.exit_report->sentence) : facts.exit_report->sentence;
}

std::vector<std::string> bad_nodes_of(const AttemptFacts& facts) {
  if (facts.exit_report && !facts.exit_report->bad_hosts.empty()) return facts.exit_report->bad_hosts;
  if (facts.exit_report && !facts.exit_report->host.empty()) return {facts.exit_report->host};
  return facts.nodes;
}

// Whether a full file system may be a disk of the failed program's node: other nodes have not had it, either.
bool is_of_one_node(const AttemptFacts& facts) { return !facts.exit_report->host.empty() && !facts.disk_was_full; }

}  // namespace

Finding find_cause(const AttemptFacts& facts, const RetryRules& rules) {
  const int code = facts.exit_report ? facts.exit_report->code : facts.launcher_code;
  Finding finding;
  finding.code = code;
  if (code == 0) {
    finding.cause = Cause::done;
  } else if (facts.stop_request == StopRequest::for_good) {
    finding.cause = Cause::stopped_for_good;
  } else if (const std::optional<Cause> by_slurm = cause_in_slurm(facts)) {
    finding.cause = *by_slurm;
  } else if (const std::optional<RuleMatch> match = first_match(rules, code, facts.log_tail)) {
    const std::string& pattern = match->rule.pattern;
    finding = {Cause::rule,
               match->rule.kind,
               code,
               {},
               pattern.empty() ? fmt::format("your rule for {} matched", match->matched)
                               : fmt::format("your rule '{}' matched the line '{}'", printable(pattern),
                                             printable(match->matched.substr(0, 200)))};
    if (facts.exit_report) finding.sentence += ": " + facts.exit_report->sentence;
    if (match->rule.next == NextNodes::others) finding.bad_nodes = bad_nodes_of(facts);
    return finding;
  } else {
    finding.cause = cause_of_failure(facts, code);
  }
  finding.kind = row_of(finding.cause).kind;
  if (finding.cause == Cause::disk_full && !is_of_one_node(facts)) {
    finding.kind = RetryKind::permanent;
  } else if (row_of(finding.cause).next == NextNodes::others) {
    finding.bad_nodes = bad_nodes_of(facts);
  }
  finding.sentence = sentence_of(facts, finding.cause, code);
  return finding;
}

}  // namespace lockstep
