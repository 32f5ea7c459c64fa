#include "launch/run_outside_ranks.hpp"

#include "base/log.hpp"
#include "launch/current_failure.hpp"
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
    const CurrentFailure failure = describe_current_failure();
    if (!failure.sentence.empty()) log::error(failure.sentence);
    return failure.code;
  }
}

}  // namespace lockstep
