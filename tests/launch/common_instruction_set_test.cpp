#include "launch/common_instruction_set.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "base/log.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"

namespace lockstep::common_instruction_set_test {

using cpu::InstructionSet;

bool any_set(InstructionSet /*set*/) { return true; }
bool up_to_avx2(InstructionSet set) { return set <= InstructionSet::avx2; }
bool up_to_avx512(InstructionSet set) { return set <= InstructionSet::avx512; }

constexpr cpu::Processor of_2013{up_to_avx2, any_set, any_set};
constexpr cpu::Processor of_2017{up_to_avx512, any_set, any_set};
constexpr cpu::Processor of_2023{any_set, any_set, any_set};

Communicator world() { return Communicator(MPI_COMM_WORLD); }

DeviceOptions cpu_options(const std::string& instruction_set, DType precision = DType::f32) {
  DeviceOptions options;
  options.name = "cpu";
  options.instruction_set = instruction_set;
  options.precision = precision;
  return options;
}

// Each rank took its own processor's, and their weights drifted apart.
TEST(CommonInstructionSet, is_the_widest_that_all_ranks_have) {
  const Communicator all = world();
  DeviceOptions options = cpu_options("auto");
  choose_common_instruction_set(all, options, all.rank() == 1 ? of_2013 : of_2017);
  EXPECT_EQ(options.instruction_set, all.size() == 1 ? "auto" : "avx2");
}

TEST(CommonInstructionSet, stays_the_processors_own_where_all_have_the_same) {
  const Communicator all = world();
  DeviceOptions options = cpu_options("auto", DType::bf16);
  choose_common_instruction_set(all, options, of_2023);
  EXPECT_EQ(options.instruction_set, "auto");
}

// fp32 has the same bits with all sets from AVX-512 on.
TEST(CommonInstructionSet, looks_at_sets_that_differ_in_bits) {
  const Communicator all = world();
  const cpu::Processor& processor = all.rank() == 1 ? of_2017 : of_2023;
  DeviceOptions fp32 = cpu_options("auto");
  choose_common_instruction_set(all, fp32, processor);
  EXPECT_EQ(fp32.instruction_set, "auto");
  DeviceOptions bf16 = cpu_options("auto", DType::bf16);
  choose_common_instruction_set(all, bf16, processor);
  EXPECT_EQ(bf16.instruction_set, all.size() == 1 ? "auto" : "avx512");
}

TEST(CommonInstructionSet, of_a_users_own_choice_must_run_on_all_ranks) {
  const Communicator all = world();
  log::set_identity(all.rank(), fmt::format("n{}", all.rank() + 1));
  DeviceOptions options = cpu_options("avx512");
  const std::string message = message_of(
      Failure::usage, [&] { choose_common_instruction_set(all, options, all.rank() == 1 ? of_2013 : of_2017); });
  if (all.size() == 1) {
    EXPECT_EQ(message, "no error");
  } else {
    expect_message(message, {"--instruction-set"});
  }
  EXPECT_EQ(options.instruction_set, "avx512");
}

TEST(CommonInstructionSet, is_not_asked_for_on_a_gpu) {
  const Communicator all = world();
  DeviceOptions options = cpu_options("auto");
  options.name = "auto";
  options.local_rank = 0;
  options.local_gpus = {{"0000:01:00.0"}};
  choose_common_instruction_set(all, options, all.rank() == 1 ? of_2013 : of_2017);
  EXPECT_EQ(options.instruction_set, "auto");
}

}  // namespace lockstep::common_instruction_set_test
