// Reports the status of a job, a training or a search from its files, and follows it.
//
//   job_status 17              job_status runs/r20              job_status 17 --follow
#include <chrono>
#include <functional>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "launch/run_outside_ranks.hpp"
#include "run/training_status.hpp"
#include "search/search_overview.hpp"
#include "slurm/status/job_record.hpp"
#include "train/monitoring/job_training.hpp"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

struct StatusOptions {
  std::string what;
  bool follow = false;

  void declare(CLI::App& app) {
    app.description("Prints the state of a job, a training or a search, from its files and from Slurm.");
    app.add_option("JOB|FOLDER", what, "Job ID (17; array task: 6_1), or output folder of a training or search")
        ->required();
    app.add_flag("--follow", follow, "Then print a line for each change, until it ends");
    app.footer("Examples:\n  job_status 17\n  job_status runs/r20\n  job_status 17 --follow");
  }
};

struct Look {
  std::string text;  // the full status, several lines
  std::string line;  // the changing part
  std::string head;  // the part of `line` whose changes deserve a new line
  bool is_last = false;
  bool is_known = true;
};

Look look_at_folder(const fs::path& folder) {
  if (holds_search(folder)) {
    const SearchStatus status = search_status(folder);
    return {describe_search(folder), status.line, status.line, !status.is_running};
  }
  require_training(folder, "JOB|FOLDER");
  const TrainingStatus status = training_status(folder);
  const bool has_begun = status.summary.state || status.failure;
  const bool is_over = has_begun && status.holder.kind == FolderHolder::Kind::nobody;
  return {status_text(status), training_line(status), describe_state(status), is_over};
}

Look look_at_job(JobNumber number) {
  ScontrolAnswer answer = ask_scontrol(number);
  if (is_array(number, answer)) return {array_text(number, answer), "", "", true};
  const bool is_part = answer.jobs.size() == 1 && answer.jobs[0].whole > 0 && answer.jobs[0].id != answer.jobs[0].whole;
  if (is_part) {
    number = {answer.jobs[0].whole, {}};
    answer = ask_scontrol(number);
  }
  const JobRecord record = find_job(number, answer, fs::current_path());
  Look look;
  look.is_known = record.slurm.id > 0 || !record.attempts.empty();
  look.is_last = phase_of(record) == JobPhase::over || !look.is_known;
  look.text = job_text(record);
  look.head = fmt::format("{} {}", describe_slurm_state(record), attempt_of(record));
  TrainingStatus status;
  if (!record.output.empty()) {
    status = training_status(record.output, record.slurm.folder);
    look.text += "\n" + job_training_text(record, status);
  }
  look.line = job_line(record, status);
  return look;
}

void require_known(const Look& look, const JobNumber& number) {
  const std::string name = format_job_number(number);
  if (number.task) {
    require(look.is_known, Failure::usage,
            "job {} is unknown: Slurm does not (or no longer) know it. Its files have another job ID, which is in the "
            "first line of its log. Use that job ID.",
            name);
  }
  require(look.is_known, Failure::usage,
          "job {} is unknown: Slurm does not (or no longer) know it, and this folder has no file "
          "'*-{}.attempts.jsonl'. Go to the folder of its log.",
          name, name);
}

std::function<Look()> look_for(const std::string& what) {
  std::error_code error;
  if (fs::is_directory(what, error)) return [what] { return look_at_folder(what); };
  const std::optional<JobNumber> number = parse_job_number(what);
  if (!number) {
    throw Error(
        Failure::usage,
        fmt::format("'{}' is neither a job ID (17, or 6_1 for an array task) nor a folder. Name one of them.", what));
  }
  require_known(look_at_job(*number), *number);
  return [number] { return look_at_job(*number); };
}

// On a terminal, numbers change in place and important changes start a new line. Elsewhere, every change is a line.
void follow(const std::function<Look()>& look_again, Look look) {
  std::string told = look.line;
  bool was_last = look.is_last;
  while (!(look.is_last && was_last)) {  // a job may seem over for a moment while Slurm requeues it
    constexpr std::chrono::seconds pause(2);
    std::this_thread::sleep_for(pause);
    was_last = look.is_last;
    const Look next = look_again();
    const bool leaves_line = log::is_terminal() ? next.head != look.head : next.line != told;
    if (leaves_line) log::plain(next.line);
    log::progress(next.line);
    told = next.line;
    look = next;
  }
  log::plain(look.text);
}

}  // namespace

int main(int argc, char** argv) {
  return run_outside_ranks<StatusOptions>(argc, argv, [](const StatusOptions& options) {
    const std::function<Look()> look_again = look_for(options.what);
    const Look look = look_again();
    log::plain(look.text);
    if (options.follow && !look.is_last) follow(look_again, look);
    return 0;
  });
}
