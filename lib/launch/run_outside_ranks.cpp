#include "launch/run_outside_ranks.hpp"

#include "base/current_error.hpp"
#include "base/log.hpp"
#include "job/job_environment.hpp"
#include "launch/parse.hpp"
#include "launch/program_pages.hpp"
#include "runtime/failure/failure_report.hpp"

namespace lockstep {

int run_program_outside_ranks(int argc, char** argv, const std::function<void(CLI::App&)>& declare,
                              const std::function<int()>& body) {
  log::fill_closed_streams();
  if (const std::optional<int> code = write_pages_if_asked(argc, argv, declare)) return *code;
  try {
    if (const std::optional<int> code = parse_options(argc, argv, declare)) return *code;
    return body();
  } catch (...) {
    const Error error = current_error();
    if (error.failure() != Failure::output_closed) log::error(error.what());
    return error.exit_code();
  }
}

int with_exit_report(const std::function<int()>& body) {
  failure_report::set_rank(0, log::host());
  failure_report::set_exit_report_file(this_job().exit_report_file);
  try {
    return body();
  } catch (const Error& error) {
    failure_report::write({error.exit_code(), 0, error.what()});
    throw;
  }
}

}  // namespace lockstep
