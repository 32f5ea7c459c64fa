#include "slurm/roles/supervisor.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <limits>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "job/job_environment.hpp"
#include "run/exit_report.hpp"
#include "slurm/retry/text_cause.hpp"
#include "slurm/roles/child_process.hpp"
#include "slurm/roles/completion.hpp"
#include "slurm/roles/rendezvous.hpp"
#include "slurm/roles/signal_queue.hpp"
#include "slurm/roles/step_end.hpp"
#include "slurm/roles/task_output.hpp"
#include "slurm/status/scontrol_job.hpp"

namespace lockstep {
namespace {

class Supervisor {
 public:
  explicit Supervisor(const SupervisorOptions& options)
      : options_(options), roles_(options.cluster.roles), steps_(steps_of(roles_)), rendezvous_(roles_, steps_) {}

  ExitReport run() {
    for (std::size_t step = 0; step < steps_.size(); ++step) start(step);
    while (std::ranges::any_of(children_, [](const Child& child) { return !child.is_counted; })) {
      wait();
      take_signals();
      pass_output_on();
      rendezvous_.process_events();
      if (!is_open_) welcome();
      take_ends();
      keep_deadlines();
    }
    return end_.value_or(ExitReport{static_cast<int>(Failure::other), 0, "", "no instance was started."});
  }

 private:
  struct Child {
    ChildProcess process;
    TaskOutput output;
    std::optional<TaskEnd> first_end{};  // chosen by first_cause()
    bool has_lost_node = false;
    bool is_counted = false;
  };

  std::filesystem::path exit_report_path(std::size_t step) const {
    std::filesystem::path file = options_.cluster_file;
    return file.replace_extension(steps_[step].name + ".json");
  }

  std::string describe_step(std::size_t step) const {
    const RoleStep& one = steps_[step];
    const ClusterInstance first = instances_of(roles_).at(one.places.front());
    const Role& role = roles_[first.role];
    return role.world.empty() ? instance_name(role, first.instance) : role.world;
  }

  void start(std::size_t step) {
    const std::map<std::string, std::string> variables = {
        {rendezvous_variable, rendezvous_address_text(rendezvous_.address_of_step(step))},
        {cluster_variable, options_.cluster_file.string()},
        {exit_report_variable, exit_report_path(step).string()}};
    children_.push_back({ChildProcess(srun_arguments(steps_[step], roles_, options_.slots, options_.mpi,
                                                     options_.program, options_.host),
                                      variables),
                         TaskOutput(steps_[step].places.size(), lines_for_text_cause)});
  }

  void wait() {
    std::vector<pollfd> waits = {{signals_.handle(), POLLIN, 0}};
    for (const Child& child : children_) waits.push_back({child.process.handle(), POLLIN, 0});
    rendezvous_.add_handles(waits);
    constexpr int look_again_ms = 200;
    ::poll(waits.data(), waits.size(), look_again_ms);
  }

  void take_signals() {
    for (std::optional<Signal> signal = signals_.next(); signal; signal = signals_.next()) {
      if (signal->number == SIGCHLD) continue;
      stop_ = StopAsked::yes;
      const bool knows_all = signal->number == SIGTERM && is_of_slurm(signal->sender);
      if (!knows_all) tell_all(SIGUSR1);
      log::info("received a request to stop ({}). {}.", ::strsignal(signal->number),
                knows_all ? "Slurm signals the instances itself" : "It was forwarded to all instances");
      if (!is_open_)
        finish(
            {static_cast<int>(Failure::stopped_early), 0, "", "the job was stopped before all instances had joined."});
    }
  }

  // slurmstepd sends a signal to all processes of a job. Forwarding it would use up the time for a checkpoint.
  static bool is_of_slurm(std::int64_t process) try {
    constexpr std::size_t longest_name = 64;
    return read_live_file(fmt::format("/proc/{}/comm", process), longest_name).starts_with("slurmstepd");
  } catch (const Error&) {
    return false;
  }

  void pass_output_on() {
    for (std::size_t step = 0; step < children_.size(); ++step) {
      for (const std::string& line : children_[step].process.lines()) {
        pass_on(step, children_[step].output.take(line));
      }
    }
  }

  void pass_on(std::size_t step, const std::vector<OutputLine>& lines) {
    for (const OutputLine& line : lines) {
      if (!line.is_marked) note_message(children_[step], line.text);
      log::forwarded(fmt::format("[{}]  {}", describe_step(step), printable(line.text)));
    }
  }

  // What srun itself reports. Lines of a step's only task look the same.
  static void note_message(Child& child, const std::string& line) {
    const std::optional<TaskEnd> ended = parse_task_end(line);
    if (ended) child.first_end = first_cause(child.first_end, *ended);
    if (is_node_failure(line)) child.has_lost_node = true;
  }

  void welcome() {
    if (end_) return;
    if (rendezvous_.all_have_joined()) {
      Cluster cluster = options_.cluster;
      rendezvous_.fill_in(cluster);
      write_cluster(options_.cluster_file, cluster);
      rendezvous_.begin(cluster);
      is_open_ = true;
      log::info("all {} instances have joined. The cluster file is '{}'.", cluster.instances.size(),
                options_.cluster_file.string());
    } else if (watch_.seconds() > options_.join_timeout_seconds) {
      finish({static_cast<int>(Failure::out_of_step), 0, "",
              fmt::format("these instances have not joined after {:.0f} s, so the job cannot start: {}. Check that "
                          "their nodes are up and can reach this node.",
                          options_.join_timeout_seconds, rendezvous_.describe_missing())});
    }
  }

  void take_ends() {
    for (std::size_t step = 0; step < children_.size(); ++step) {
      const std::optional<int> code = children_[step].process.exit_code();
      if (!code || std::exchange(children_[step].is_counted, true)) continue;
      pass_on(step, children_[step].output.take_end());
      if (!end_) count(step, *code);
    }
  }

  void count(std::size_t step, int launcher_code) {
    // srun returns 0 if the tasks of a failed node were its only ones.
    if (launcher_code == 0 && children_[step].has_lost_node) launcher_code = static_cast<int>(Failure::other);
    const std::optional<ExitReport> exit_report =
        launcher_code == 0 ? std::nullopt : read_exit_report(exit_report_path(step));
    const StepEnd ended = step_end(steps_[step], options_.slots, launcher_code, exit_report, children_[step].first_end);
    ExitReport end{ended.code, ended.signal, ended.host, ""};
    if (!exit_report && stop_ == StopAsked::no) end.error_line = error_line_of(step, ended);
    const std::string why = describe_owner(step, ended) + (exit_report ? " " + ended.sentence : "");
    log::info("{} ended with code {}.{}", describe_step(step), ended.code, why);
    if (!is_open_) {
      end.code = ended.code == 0 ? static_cast<int>(Failure::other) : ended.code;
      end.sentence =
          fmt::format("{} ended with code {} before all instances had joined.{}", describe_step(step), ended.code, why);
      return finish(end);
    }
    if (stop_ == StopAsked::no && is_end_by_request(ended.code) && slurm_ends_job()) {
      stop_ = StopAsked::yes;
      log::info("Slurm is ending the job, and has signaled its instances.");
    }
    for (const std::size_t place : places_by_end(steps_[step], ended)) {
      const ClusterInstance one = instances_of(roles_).at(place);
      ends_.push_back({one.role, one.instance, ended.code});
    }
    const std::optional<JobEnd> decided = job_end(roles_, ends_, stop_);
    if (decided) {
      end.code = decided->code;
      end.sentence = decided->sentence + (decided->code == 0 ? "" : why);
      finish(end);
    } else if (stop_ == StopAsked::yes && !kill_at_) {
      kill_at_ = watch_.seconds() + options_.grace_seconds;
    }
  }

  // Printed by the instance that failed first.
  std::string error_line_of(std::size_t step, const StepEnd& ended) const {
    const std::vector<std::size_t>& places = steps_[step].places;
    if (!ended.first && places.size() > 1) return "";
    const auto task = std::ranges::find(places, ended.first.value_or(places.front())) - places.begin();
    const std::vector<std::string> lines = children_[step].output.last_of(static_cast<std::size_t>(task));
    const std::optional<TextCause> found = find_text_cause(ended.code, lines);
    return found ? found->line : "";
  }

  // Before a preemption, Slurm signals only the tasks.
  bool slurm_ends_job() const {
    const ScontrolAnswer answer = ask_scontrol(options_.number);
    return std::ranges::any_of(answer.jobs, is_being_ended);
  }

  // Names the instance of a world that failed first.
  std::string describe_owner(std::size_t step, const StepEnd& ended) const {
    if (!ended.first || steps_[step].places.size() == 1) return "";
    const ClusterInstance first = instances_of(roles_).at(*ended.first);
    return fmt::format(" {} was the first to end.", instance_name(roles_[first.role], first.instance));
  }

  void finish(const ExitReport& end) {
    if (end_) return;
    end_ = end;
    // Before all instances have joined, there is nothing to stop cleanly.
    tell_all(is_open_ ? SIGUSR1 : SIGTERM);
    kill_at_ = watch_.seconds() + options_.grace_seconds;
  }

  void keep_deadlines() {
    if (!kill_at_ || watch_.seconds() < *kill_at_) return;
    // srun ends its step on the first SIGTERM, and on another one if its node does not answer.
    tell_all(was_killed_ ? SIGKILL : SIGTERM);
    was_killed_ = true;
    kill_at_ = watch_.seconds() + options_.grace_seconds + 30;
  }

  void tell_all(int signal) {
    for (const Child& child : children_) child.process.signal(signal);
  }

  const SupervisorOptions& options_;
  const std::vector<Role>& roles_;
  std::vector<RoleStep> steps_;
  SignalQueue signals_;
  Rendezvous rendezvous_;
  std::vector<Child> children_;
  std::vector<InstanceEnd> ends_;
  StopAsked stop_ = StopAsked::no;
  bool is_open_ = false;  // all instances have joined and begun
  bool was_killed_ = false;
  std::optional<ExitReport> end_;
  std::optional<double> kill_at_;  // in seconds of watch_
  Stopwatch watch_;
};

}  // namespace

ExitReport supervise(const SupervisorOptions& options) { return Supervisor(options).run(); }

}  // namespace lockstep
