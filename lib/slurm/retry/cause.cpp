#include "slurm/retry/cause.hpp"

#include <algorithm>
#include <csignal>

#include "base/error.hpp"

namespace lockstep {
namespace {

constexpr RetryKind none = RetryKind::none;
constexpr RetryKind transient = RetryKind::transient;
constexpr RetryKind unknown = RetryKind::unknown;
constexpr RetryKind permanent = RetryKind::permanent;
constexpr NextNodes any = NextNodes::any;
constexpr NextNodes others = NextNodes::others;

constexpr std::array<CauseRow, 32> rows{{
    {Cause::running, "running", none, any, "the attempt is running, or ended without a record"},
    {Cause::done, "done", none, any, "the program finished successfully"},
    {Cause::stopped_for_good, "stopped_for_good", permanent, any, "stop_job ended the job"},
    {Cause::cancelled, "cancelled", permanent, any, "the job was cancelled (scancel)"},
    {Cause::time_limit, "time_limit", permanent, any, "Slurm's time limit ended the job before the program stopped"},
    {Cause::preempted, "preempted", transient, any, "another job needed the nodes (preemption)"},
    {Cause::node_failure, "node_failure", transient, any, "a node failed"},
    {Cause::requeued, "requeued", transient, any, "the job was requeued (scontrol requeue)"},
    {Cause::lost, "lost", transient, any, "the attempt ended without a record: its first node failed, or lost the job"},
    {Cause::too_many_attempts, "too_many_attempts", permanent, any, "the job has used all of its attempts"},
    {Cause::stopped_early, "stopped_early", transient, any, "the program stopped early, with a clean shutdown"},
    {Cause::bad_node, "bad_node", transient, others, "a node is faulty: a GPU is lost or reports memory errors"},
    {Cause::out_of_step, "out_of_step", unknown, any,
     "a rank hung, or its weights differ from those of the other ranks"},
    {Cause::failed, "failed", unknown, any, "the program failed"},
    {Cause::usage, "usage", permanent, any, "an option, a file name or the configuration is wrong"},
    {Cause::bad_data, "bad_data", permanent, any, "a shard, a model file or every checkpoint is damaged"},
    {Cause::out_of_memory, "out_of_memory", permanent, any, "the host or a GPU ran out of memory"},
    {Cause::diverged, "diverged", permanent, any, "the loss is not a finite number"},
    {Cause::killed, "killed", unknown, any, "a process was killed (SIGKILL), and Slurm reports no reason"},
    {Cause::terminated, "terminated", unknown, any, "a process was terminated (SIGTERM), and Slurm reports no reason"},
    {Cause::crashed, "crashed", unknown, any, "a process crashed (SIGSEGV or SIGABRT)"},
    {Cause::illegal_instruction, "illegal_instruction", permanent, any,
     "the processor does not support an instruction of the program (SIGILL)"},
    {Cause::bus_error, "bus_error", permanent, any,
     "mapped memory is not available (SIGBUS): a file was truncated, or /dev/shm is full"},
    {Cause::arithmetic_error, "arithmetic_error", permanent, any,
     "an arithmetic error, such as a division by zero (SIGFPE)"},
    {Cause::broken_pipe, "broken_pipe", unknown, any,
     "a process wrote to a closed pipe or connection (SIGPIPE): its launcher or another node ended"},
    {Cause::no_program, "no_program", permanent, any, "the program does not exist, or is not executable"},
    {Cause::resource_conflict, "resource_conflict", RetryKind::transient_conflict, any,
     "a resource that the attempt needs is in use: a port, or the nodes"},
    // As in OpenPAI, which never repeats errors of imports, drivers and the memory of GPUs. It evicts a task from a
    // node whose disk is full, and starts it on another one.
    {Cause::import_error, "import_error", permanent, any, "a Python module is missing, or cannot be imported"},
    {Cause::driver_too_old, "driver_too_old", permanent, any,
     "the node's NVIDIA driver is older than the program's CUDA needs"},
    {Cause::disk_full, "disk_full", transient, others, "a file system is full"},
    {Cause::other_code, "other_code", unknown, any,
     "the program or its launcher ended with a code that Lockstep does not define"},
    {Cause::rule, "rule", unknown, any, "a rule of the user matches"},
}};

constexpr int signal_base = 128;

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<std::size_t>(rows[i].cause) != i) return false;
  }
  return true;
}
static_assert(rows_are_in_order());

}  // namespace

const CauseRow& row_of(Cause cause) { return rows[static_cast<std::size_t>(cause)]; }

std::optional<Cause> cause_named(std::string_view name) {
  const auto* const found = std::ranges::find_if(rows, [&](const CauseRow& row) { return name == row.name; });
  return found == rows.end() ? std::nullopt : std::optional(found->cause);
}

Cause cause_of_signal(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGABRT:
      return Cause::crashed;
    case SIGILL:
      return Cause::illegal_instruction;
    case SIGBUS:
      return Cause::bus_error;
    case SIGFPE:
      return Cause::arithmetic_error;
    case SIGPIPE:
      return Cause::broken_pipe;
    case SIGTERM:
    case SIGINT:
    case SIGQUIT:
    case SIGHUP:
      return Cause::terminated;
    default:
      return Cause::killed;
  }
}

Cause cause_of_code(int code) {
  constexpr int not_executable = 126;
  constexpr int not_found = 127;
  switch (code) {
    case 0:
      return Cause::done;
    case static_cast<int>(Failure::other):
      return Cause::failed;
    case static_cast<int>(Failure::usage):
      return Cause::usage;
    case static_cast<int>(Failure::bad_data):
      return Cause::bad_data;
    case static_cast<int>(Failure::out_of_memory):
      return Cause::out_of_memory;
    case static_cast<int>(Failure::bad_node):
      return Cause::bad_node;
    case static_cast<int>(Failure::stopped_early):
      return Cause::stopped_early;
    case static_cast<int>(Failure::out_of_step):
      return Cause::out_of_step;
    case static_cast<int>(Failure::diverged):
      return Cause::diverged;
    case not_executable:
    case not_found:
      return Cause::no_program;
    default:
      return code > signal_base && code <= signal_base + SIGSYS ? cause_of_signal(code - signal_base)
                                                                : Cause::other_code;
  }
}

}  // namespace lockstep
