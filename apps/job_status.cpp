// Says how a job, or a training, stands, from files alone, and watches it.
//
//   job_status 17              job_status runs/r20              job_status 17 --follow
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text/number.hpp"
#include "launch/run_outside_ranks.hpp"
#include "slurm/status/job_record.hpp"
#include "train/following/training_status.hpp"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

struct StatusOptions {
  std::string what;
  bool follow = false;

  void declare(CLI::App& app) {
    app.description(
        "Says how a job, or a training, stands: from the files that it writes, and from Slurm's word on it.");
    app.add_option("JOB|FOLDER", what, "A job's number, or the output folder of a training")->required();
    app.add_flag("--follow", follow, "Say it again whenever it changes, until it has ended");
  }
};

struct Look {
  std::string text;
  bool is_last = false;
};

std::string words_of_scontrol(std::int64_t job) {
  const std::string command = fmt::format("timeout 10 scontrol show job {} 2>/dev/null", job);
  const auto close = [](FILE* pipe) { ::pclose(pipe); };
  const std::unique_ptr<FILE, decltype(close)> pipe(::popen(command.c_str(), "re"), close);  // NOLINT(cert-env33-c)
  std::array<char, 1 << 16> text{};
  const std::size_t got = pipe ? std::fread(text.data(), 1, text.size(), pipe.get()) : 0;
  return {text.data(), got};
}

Look look_at_folder(const fs::path& folder) {
  const TrainingStatus status = training_status(folder);
  const bool is_over = status.state && status.holder.kind == FolderHolder::Kind::nobody;
  return {status_text(status), is_over};
}

Look look_at_job(std::int64_t job) {
  const JobRecord record = find_job(job, parse_scontrol_job(words_of_scontrol(job)), fs::current_path());
  require(!record.slurm.state.empty() || !record.attempts.empty(), Failure::usage,
          "nothing is known of job {}: Slurm does not name it (any more), and no file *-{}.attempts.jsonl lies here. "
          "Go to the folder of its log?",
          job, job);
  std::string text = job_text(record);
  if (!record.output.empty()) text += "\n" + look_at_folder(record.output).text;
  return {text, has_ended(record)};
}

Look look_at(const std::string& what) {
  std::error_code error;
  if (fs::is_directory(what, error)) return look_at_folder(what);
  const std::optional<std::int64_t> job =
      parse_number<std::int64_t>(what, {1, std::numeric_limits<std::uint32_t>::max()});
  require(job.has_value(), Failure::usage, "'{}' is neither a job's number nor a folder. Name one of them.", what);
  return look_at_job(*job);
}

}  // namespace

int main(int argc, char** argv) {
  return run_outside_ranks<StatusOptions>(argc, argv, [](const StatusOptions& options) {
    Look look = look_at(options.what);
    log::plain(look.text);
    while (options.follow && !look.is_last) {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      Look next = look_at(options.what);
      if (next.text != look.text) log::plain("\n" + next.text);
      look = std::move(next);
    }
    return 0;
  });
}
