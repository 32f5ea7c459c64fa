#include "job/launcher.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text/number.hpp"

namespace lockstep {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here changes it
  return value == nullptr ? "" : value;
}

// Slurm numbers the steps that are no ranks of srun's (batch script, interactive shell, extern) down from 2^32
// (slurm.h: SLURM_PENDING_STEP and those below it).
bool is_numbered_step(std::string_view text) {
  constexpr std::uint64_t least_special = 0xfffffff0;
  return parse_number(text, NumberRange<std::uint64_t>{0, least_special - 1}).has_value();
}

}  // namespace

std::optional<std::string> launcher_here() {
  if (!variable("OMPI_COMM_WORLD_SIZE").empty()) return "mpirun";
  if (is_numbered_step(variable("SLURM_STEP_ID"))) return "srun";
  if (!variable("PMIX_RANK").empty() || !variable("PMI_RANK").empty()) return "a PMI launcher";
  return std::nullopt;
}

}  // namespace lockstep
