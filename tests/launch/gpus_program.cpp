// A program with --gpus, on a machine that claims as many GPUs as GPUS_HERE says. Tells with how many ranks it runs.
#include <cstdlib>

#include "base/log.hpp"
#include "launch/gpu_ranks.hpp"
#include "launch/run.hpp"

using namespace lockstep;

namespace {

struct Options {
  std::string gpus;
  std::string device = "auto";
  std::string text;

  void declare(CLI::App& app) {
    declare_gpus(app, gpus);
    app.add_option("--device", device, "As other programs have it");
    app.add_option("--text", text, "What to say");
  }
};

std::size_t claimed_gpus() {
  const char* const claim = std::getenv("GPUS_HERE");  // NOLINT(concurrency-mt-unsafe): nothing here changes it
  return claim == nullptr ? 0 : std::strtoul(claim, nullptr, 10);
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::optional<int> code = spread_over_gpus(argc, argv, claimed_gpus)) return *code;
  return run<Options>(argc, argv, [](Session& session, const Options& options) {
    log::plain(fmt::format("{} ranks: {}", session.world.size(), options.text));
  });
}
