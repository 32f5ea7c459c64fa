#include "slurm/submit/sbatch_run.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <string_view>
#include <thread>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "slurm/submit/sbatch_arguments.hpp"

namespace lockstep {
namespace {

constexpr int first_signal_code = 128;  // as shells report a program that a signal ended

// squeue's answer about a submission.
struct FoundJob {
  bool is_known = false;  // squeue answered
  std::string number;     // empty: no job exists
};

FoundJob ask_squeue(const std::string& tag, const std::vector<std::string>& sbatch_arguments) {
  std::vector<std::string> words = {"timeout",      "--kill-after=5", "20",      "squeue", "--noheader", "--me",
                                    "--states=all", "--format=%A|%k", "--sort=i"};
  std::ranges::copy_if(sbatch_arguments, std::back_inserter(words), names_cluster);
  FoundJob found;
  const int code = run_with_input(words, "", [&](const std::string& line) {
    const std::size_t mark = line.find('|');
    const bool is_it = mark != std::string::npos && line.find(tag, mark) != std::string::npos;
    if (is_it && found.number.empty()) found.number = line.substr(0, mark);  // a heterogeneous job has several
  });
  found.is_known = code == 0;
  return found;
}

// The request of an interrupted sbatch may still be in progress, so this asks several times.
FoundJob find_job(const std::string& tag, const std::vector<std::string>& sbatch_arguments, int code) {
  int tries = code >= first_signal_code ? 3 : 1;
  FoundJob found = ask_squeue(tag, sbatch_arguments);
  while (--tries > 0 && found.is_known && found.number.empty()) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    found = ask_squeue(tag, sbatch_arguments);
  }
  return found;
}

[[noreturn]] void refuse(int code, const std::string& tag) {
  if (code == 0) {
    throw Error(Failure::usage,
                "sbatch reported no error, but squeue lists no job of this submission. Nothing was submitted.");
  }
  require(code > first_signal_code, Failure::usage,
          "sbatch refused the job, with the message above. Nothing was submitted.");
  const std::string signal = ::strsignal(code - first_signal_code);
  require(!tag.empty(), Failure::usage,
          "a signal ended sbatch ({}), so it is unknown whether the job was submitted. Look for it with squeue --me.",
          signal);
  throw Error(
      Failure::usage,
      fmt::format("a signal ended sbatch ({}), and squeue lists no job of this submission. Nothing was submitted.",
                  signal));
}

void keep(SecretsFile& secrets, const std::string& number) {
  secrets.keep();
  log::warning("job {} was submitted. Its secrets are in '{}' until the job ends. To cancel the job: scancel {}",
               number, secrets.path().string(), number);
}

}  // namespace

std::string job_in_line(const std::string& line) {
  constexpr std::string_view beginning = "Submitted batch job ";
  std::string_view text = line;
  const bool is_sentence = text.starts_with(beginning);
  if (is_sentence) text.remove_prefix(beginning.size());
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool ends_well = end == text.size() || text[end] == (is_sentence ? ' ' : ';');
  return ends_well ? std::string(text.substr(0, end)) : "";
}

int run_sbatch(std::vector<std::string> words, const std::string& script, SecretsFile* secrets,
               BlockedSignals& signals) {
  if (secrets != nullptr) add_comment(words, secrets->tag());
  std::string number;
  const int code = run_with_input(words, script, [&](const std::string& line) {
    const bool is_news = number.empty() && !job_in_line(line).empty();
    if (is_news) number = job_in_line(line);
    if (is_news && secrets != nullptr) secrets->keep();
    log::plain(line);
    if (!is_news) return;
    if (signals.has_pending_signal() && secrets != nullptr) keep(*secrets, number);
    log::flush();
    signals.release();
  });
  if (!number.empty() || (secrets == nullptr && code == 0)) return code;
  if (secrets == nullptr && code < first_signal_code && waits_in_silence(words)) {
    log::warning(
        "sbatch ended with code {}. If it printed no error, this is the code of the job (--wait). Look for the job "
        "with "
        "squeue --me --states=all, because --quiet hides its number.",
        code);
    return code;
  }
  if (secrets == nullptr) refuse(code, "");
  const FoundJob found = find_job(secrets->tag(), words, code);
  if (!found.number.empty()) {
    secrets->keep();
    const bool has_ended = is_absent(secrets->path());  // with --wait; the job has removed them
    if ((code != 0 || signals.has_pending_signal()) && !has_ended) keep(*secrets, found.number);
    return code;
  }
  const bool has_failed = code > 0 && code < first_signal_code;
  if (found.is_known || has_failed) refuse(code, secrets->tag());
  secrets->keep();
  log::warning(
      "it is unknown whether the job was submitted, because squeue does not answer. Its secrets are in '{}'. Remove "
      "that file if no job has the comment '{}'.",
      secrets->path().string(), secrets->tag());
  return code;
}

}  // namespace lockstep
