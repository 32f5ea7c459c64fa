#include "launch/run.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backend/versions.hpp"
#include "base/current_error.hpp"
#include "base/error.hpp"
#include "base/io/hdf5.hpp"
#include "base/log.hpp"
#include "comm/check_mpi.hpp"
#include "comm/mpi_session.hpp"
#include "comm/same_on_ranks.hpp"
#include "job/job_environment.hpp"
#include "launch/build_info.hpp"
#include "launch/common_instruction_set.hpp"
#include "launch/common_refusal.hpp"
#include "launch/help_request.hpp"
#include "launch/local_gpus.hpp"
#include "launch/parse.hpp"
#include "launch/program_pages.hpp"
#include "launch/start_limit.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/failure/crash_handler.hpp"
#include "runtime/failure/failure_report.hpp"
#include "runtime/stop/process_signals.hpp"
#include "runtime/watch/rank_status.hpp"
#include "runtime/watch/watcher.hpp"

namespace lockstep {
namespace {

// Reports the failure. Returns whether this rank's report was used.
bool tell(const Error& error) {
  if (error.failure() == Failure::output_closed) return false;
  const bool speaks = failure_report::write({error.exit_code(), 0, error.what()});
  if (speaks) log::error(error.what());
  return speaks;
}

// Input that one rank cannot use, most other ranks usually cannot use either.
bool is_refusal(Failure failure) { return failure == Failure::usage || failure == Failure::bad_data; }

// The terminate handler. It runs at the throw without unwinding, so no destructor can wait for ranks that never arrive.
[[noreturn]] void end_job() {
  if (std::current_exception() == nullptr) std::abort();
  const Error error = current_error();
  const int code = error.exit_code();
  const bool has_spoken = tell(error);
  if (is_refusal(error.failure()) && common_refusal::all_end(code)) std::_Exit(code);
  if (!has_spoken) {
    // Often all ranks fail for the same reason. One rank reports it and ends the job. Ending the job here as well could
    // interrupt that report.
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > 1) MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

std::string host_name() {
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  check_mpi(MPI_Get_processor_name(name.data(), &length), "tell this node's name");
  return {name.data(), static_cast<std::size_t>(length)};
}

void introduce(const Communicator& world) {
  const std::string host = host_name();
  log::set_identity(world.rank(), host);
  failure_report::set_rank(world.rank(), host);
  install_crash_handlers();
  silence_hdf5();
}

// Collective. Uses rank 0's environment, because launchers may not pass it to the other ranks.
void begin_attempt(const Communicator& world) {
  failure_report::set_exit_report_file(world.broadcast(this_job().exit_report_file, 0));
  if (world.rank() == 0) failure_report::begin_attempt();
}

// srun starts as many processes as requested, even if they cannot find each other.
std::string single_process_message(std::int64_t processes) {
  return fmt::format(
      "srun started {} processes, but each one is alone in its MPI job. They would do the same work {} times. Use srun "
      "--mpi=pmix with an MPI built with PMIx, or mpirun (LOCKSTEP_LAUNCHER=mpirun).",
      processes, processes);
}

std::string fault_of(const JobEnvironment& job) {
  if (!job.mistake.empty()) return fmt::format("{}. Correct or unset it.", job.mistake);
  const bool lonely = job.launcher == Launcher::srun && !job.has_pmi && job.rank && job.rank->ranks > 1;
  return lonely ? single_process_message(job.rank->ranks) : "";
}

// Runs before MPI starts, which would end the program with messages of its own. Returns the exit code, or nullopt if
// the environment is valid.
std::optional<int> refuse_environment() {
  const JobEnvironment& job = this_job();
  const std::string fault = fault_of(job);
  if (fault.empty()) return std::nullopt;
  const Error error(Failure::usage, fault);
  if (!job.rank || job.rank->rank == 0) {
    failure_report::set_exit_report_file(job.exit_report_file);
    tell(error);
  }
  return error.exit_code();
}

void require_one_world(const Communicator& world) {
  const JobEnvironment& job = this_job();
  if (job.launcher != Launcher::srun || !job.rank || world.size() > 1) return;
  require(job.rank->ranks == 1, Failure::usage, "{}", single_process_message(job.rank->ranks));
}

// Collective. Nodes with local copies of a program may have different versions.
void require_one_program(const Communicator& world, const Invocation& invocation) {
  const std::string name = std::filesystem::path(invocation.command_line.front()).filename();
  require_same_on_ranks(world,
                        {{"program", fmt::format("{} {} ({}{}{})", name, lockstep_version(), invocation.commit,
                                                 invocation.commit.empty() ? "" : ", ", invocation.build)}},
                        "Install the same version on all nodes, or start it from a folder that all nodes share.");
}

ParsingRanks parsing_ranks(const Communicator& world) {
  return {world.rank(),
          [&world](const std::vector<RankValue>& values) {
            require_same_on_ranks(world, values, "Start all ranks with the same options.");
          },
          [&world](const std::function<void()>& check) { on_rank_0(world, check); }};
}

// Threads get stacks of the size of `ulimit -s`, which some sites make small. This sets a minimum.
void give_threads_stacks() {
  constexpr std::size_t least = std::size_t{2} << 20U;
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0) return;
  std::size_t size = 0;
  ::pthread_attr_getstacksize(&attributes, &size);
  if (size < least && ::pthread_attr_setstacksize(&attributes, least) == 0) ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

Ending run_body(const Communicator& world, const Program& program, ProcessSignals& signals, Invocation invocation) {
  const Watcher watcher(world, world.node(), host_name(), signals, program.watch_options());
  Session session{world, nullptr};
  session.signals = &signals;
  session.invocation = std::move(invocation);
  if (const std::optional<DeviceOptions> device = program.device_options()) open_device(session, *device);
  Ending ending = program.body(session);
  // Watched until the end: other ranks may still have much work left.
  if (world.size() > 1) {
    rank_status::enter(Phase::meeting);
    world.barrier();
  }
  return ending;
}

// Collective. Returns the exit code.
int end_in_order(const Communicator& world, const Ending& ending, ProcessSignals& signals) {
  if (ending.code == 0) return 0;
  if (world.rank() == ending.rank && !ending.sentence.empty() &&
      failure_report::write({ending.code, 0, ending.sentence, ending.bad_hosts}) &&
      ending.code != static_cast<int>(Failure::stopped_early)) {
    log::error(ending.sentence);
  }
  signals.ignore_terminate();
  world.barrier();
  return ending.code;
}

// A process without a launcher needs no MPI to check its options, and MPI takes a third of a second to start. Only
// --version states what MPI has loaded.
bool parses_before_mpi(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::optional<HelpRequest> request = help_request(words);
  const bool is_version = request && request->kind == HelpRequest::Kind::version;
  return !this_job().rank && !is_version;
}

std::optional<int> parse_alone(int argc, char** argv, const Program& program) {
  failure_report::set_rank(0, log::host());
  failure_report::set_exit_report_file(this_job().exit_report_file);
  failure_report::begin_attempt();
  return parse_options(argc, argv, program.declare);
}

std::optional<int> run_alone(const std::function<std::optional<int>()>& run_all) {
  try {
    return run_all();
  } catch (...) {
    const Error error = current_error();
    tell(error);
    return error.exit_code();
  }
}

}  // namespace

void open_device(Session& session, DeviceOptions options) {
  const Communicator& world = session.world;
  place_on_node(world, options);
  choose_common_instruction_set(world, options);
  on_all_ranks(world, [&] { session.backend = open_backend(options); });
  session.plan_folder = options.plan_folder;
}

Ending ending_of(const TrainingOutcome& outcome) {
  return {outcome.failure ? static_cast<int>(*outcome.failure) : 0, outcome.sentence, {}, outcome.rank};
}

Ending ending_of(const Communicator& job, const TrainingOutcome& outcome) {
  const Ending own = ending_of(outcome);
  enum Order : std::uint8_t { failed, stopped, succeeded };
  Order order = own.code == 0 ? succeeded : failed;
  if (outcome.failure == Failure::stopped_early) order = stopped;
  const std::array<double, 4> mine = {static_cast<double>(order), outcome.time, static_cast<double>(own.rank),
                                      static_cast<double>(own.code)};
  std::vector<double> all(mine.size() * static_cast<std::size_t>(job.size()));
  job.all_gather(mine, all);
  std::array<double, 4> first = mine;
  for (std::size_t rank = 0; rank < all.size(); rank += mine.size()) {
    std::array<double, 4> other{};
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(rank), other.size(), other.begin());
    first = std::min(first, other);
  }
  const int rank = static_cast<int>(first[2]);
  return {static_cast<int>(first[3]), job.broadcast(own.sentence, rank), {}, rank};
}

int run_program(int argc, char** argv, const Program& program) {
  log::fill_closed_streams();
  give_threads_stacks();
  if (const std::optional<int> code = write_pages_if_asked(argc, argv, program.declare)) return *code;
  // A write beyond `ulimit -f` then fails with an error instead of a signal. MPI also writes files when it starts.
  std::signal(SIGXFSZ, SIG_IGN);
  ProcessSignals signals(program.stopping);
  std::optional<StartLimit> limit;
  const bool is_parsed_early = parses_before_mpi(argc, argv);
  const std::optional<int> ended = run_alone([&]() -> std::optional<int> {
    if (const std::optional<int> code = refuse_environment()) return code;
    if (program.prepare) program.prepare(argc, argv);
    if (is_parsed_early) {
      if (const std::optional<int> code = parse_alone(argc, argv, program)) return code;
    }
    limit.emplace(this_job().start_timeout_seconds, this_job().exit_report_file);
    return std::nullopt;
  });
  if (ended) return *ended;
  const MpiSession mpi(argc, argv);
  limit.reset();
  std::set_terminate(end_job);  // also for other threads, whose exceptions reach no handler
  const Communicator world(MPI_COMM_WORLD);
  common_refusal::prepare(world, signals);
  introduce(world);
  if (world.rank() == 0) signals.set_message_prefix(log::prefix());
  const BuildInfo built = build_info();
  const Invocation invocation{{argv, argv + argc}, built.commit, built.build};
  const auto parse = [&]() -> std::optional<int> {
    if (is_parsed_early) return std::nullopt;
    begin_attempt(world);
    require_one_world(world);
    require_one_program(world, invocation);
    return parse_options(argc, argv, program.declare, parsing_ranks(world));
  };
  const auto run_to_end = [&] {
    if (const std::optional<int> code = parse()) {
      signals.ignore_terminate();
      return *code;
    }
    return end_in_order(world, run_body(world, program, signals, invocation), signals);
  };
  const auto run_all = [&] {
    try {
      return run_to_end();
    } catch (const AgreedError& error) {
      const Error described = current_error();
      return end_in_order(world, {described.exit_code(), described.what(), {}, error.rank()}, signals);
    }
  };
  const int code = world.size() > 1 ? run_all() : *run_alone(run_all);
  failure_report::set_folder({});  // also releases the lock of the output folder
  common_refusal::forget();
  signals.ignore_requests();  // the program has ended, and only its output remains to be read
  log::flush();
  return code;
}

}  // namespace lockstep
