#include "launch/common_instruction_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"

namespace lockstep {
namespace {

using cpu::InstructionSet;

bool is_on_cpu(const DeviceOptions& options) {
  if (options.name != "auto") return options.name == "cpu";
  return options.local_gpus.empty() || options.local_gpus.at(static_cast<std::size_t>(options.local_rank)).empty();
}

std::string here(const Communicator& world) { return fmt::format("{} (rank {})", log::host(), world.rank()); }

// Every rank takes part in the collective call, even if its own processor supports the set.
void require_runs_everywhere(const Communicator& world, const std::string& option, const cpu::Processor& processor) {
  std::string validation_error;
  try {
    cpu::choose_instruction_set(option, processor);
  } catch (const Error& error) {
    validation_error = fmt::format("on {} {}", here(world), error.what());
  }
  if (world.max(validation_error.empty() ? 0 : 1) == 0) return;
  const std::vector<std::string> objections = world.all_gather(validation_error);
  throw Error(Failure::usage, *std::ranges::find_if_not(objections, &std::string::empty));
}

// The widest set of this rank's processor, among sets whose results differ bitwise.
InstructionSet own_choice(const DeviceOptions& options, const cpu::Processor& processor) {
  const InstructionSet widest = cpu::choose_instruction_set("auto", processor);
  return options.precision == DType::f32 ? cpu::facts_of(widest).in_fp32 : widest;
}

InstructionSet narrowest_on_ranks(const Communicator& world, InstructionSet own) {
  return static_cast<InstructionSet>(-world.max(-static_cast<double>(own)));
}

}  // namespace

void choose_common_instruction_set(const Communicator& world, DeviceOptions& options, const cpu::Processor& processor) {
  if (!is_on_cpu(options)) return;
  if (options.instruction_set != "auto") return require_runs_everywhere(world, options.instruction_set, processor);

  // Each set includes the narrower ones. So the narrowest of the ranks' choices runs on all of them.
  const InstructionSet own = own_choice(options, processor);
  const InstructionSet common = narrowest_on_ranks(world, own);
  if (world.max(own == common ? 0 : 1) == 0) return;
  options.instruction_set = cpu::facts_of(common).option;
  const std::vector<std::string> ranks =
      world.all_gather(own == common ? "" : fmt::format("{} has {}", here(world), cpu::name_of(own)));
  const auto wider = std::ranges::find_if_not(ranks, &std::string::empty);
  log::info("computing with {} on all ranks, because not all have a wider instruction set ({})", cpu::name_of(common),
            *wider);
}

}  // namespace lockstep
