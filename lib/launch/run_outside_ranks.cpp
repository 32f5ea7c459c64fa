#include "launch/run_outside_ranks.hpp"

#include "base/current_error.hpp"
#include "base/log.hpp"
#include "launch/parse.hpp"
#include "launch/program_pages.hpp"

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

}  // namespace lockstep
