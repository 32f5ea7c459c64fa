// Which instruction set a device computes with, and what it says of it.
#include "device/cpu/instruction_sets/instruction_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "base/error.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cpu/instruction_sets/loops.hpp"
#include "device/device.hpp"
#include "support/messages.hpp"

namespace lockstep::cpu::instruction_set_test {

bool up_to_avx2(InstructionSet set) { return set <= InstructionSet::avx2; }
bool all(InstructionSet /*set*/) { return true; }
bool all_but_amx(InstructionSet set) { return set != InstructionSet::amx_bf16; }
bool all_but_bf16(InstructionSet set) { return set < InstructionSet::avx512_bf16; }
bool all_but_bf16_in_vectors(InstructionSet set) { return set != InstructionSet::avx512_bf16; }

constexpr Processor of_2013{up_to_avx2, all, all};
constexpr Processor of_all{all, all, all};
constexpr Processor without_permission{all, all_but_amx, all_but_bf16_in_vectors};  // an Intel in a container

std::string refusal(const std::string& option, const Processor& processor = of_2013) {
  try {
    choose_instruction_set(option, processor);
  } catch (const Error& error) {
    return error.failure() == Failure::usage ? error.what() : "wrong failure code";
  }
  return "accepted";
}

// A flag that Linux shows has been found by another program than ours. It shows none that it does not save.
TEST(InstructionSetTest, what_linux_says_of_the_processor_is_found) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("flags")) {
  }
  std::istringstream words(line);
  const std::set<std::string> flags{std::istream_iterator<std::string>(words), {}};
  if (flags.empty()) GTEST_SKIP() << "this system tells nothing of its processor";
  const auto has = [&](std::initializer_list<const char*> names) {
    return std::ranges::all_of(names, [&](const char* name) { return flags.contains(name); });
  };
  const bool avx2 = has({"avx2", "fma"});
  const bool avx512 = avx2 && has({"avx512f", "avx512bw", "avx512vl", "avx512dq"});
  const bool avx512_bf16 = avx512 && has({"avx512_bf16"});
  EXPECT_EQ(is_supported(InstructionSet::avx2), avx2);
  EXPECT_EQ(is_supported(InstructionSet::avx512), avx512);
  EXPECT_EQ(is_supported(InstructionSet::avx512_bf16), avx512_bf16);
  if (avx512_bf16 && has({"amx_tile", "amx_bf16"})) {
    EXPECT_TRUE(is_supported(InstructionSet::amx_bf16));
  } else {
    EXPECT_FALSE(runs_here(InstructionSet::amx_bf16));
  }
}

TEST(InstructionSetTest, auto_is_the_widest_that_the_processor_runs) {
  EXPECT_EQ(choose_instruction_set("auto", of_2013), InstructionSet::avx2);
  EXPECT_EQ(choose_instruction_set("auto", of_all), InstructionSet::amx_bf16);
  EXPECT_TRUE(runs_here(choose_instruction_set("auto")));
}

// Intel's processors multiply pairs of bf16 in vectors at half the rate of fp32.
TEST(InstructionSetTest, one_that_does_not_pay_is_taken_by_name_alone) {
  EXPECT_EQ(choose_instruction_set("auto", {all_but_amx, all, all_but_bf16}), InstructionSet::avx512);
  EXPECT_EQ(choose_instruction_set("avx512_bf16", {all, all, all_but_bf16}), InstructionSet::avx512_bf16);
  EXPECT_EQ(pays_here(InstructionSet::avx512_bf16), __builtin_cpu_is("amd") != 0);
  EXPECT_TRUE(pays_here(InstructionSet::avx2));
}

TEST(InstructionSetTest, a_lower_one_may_be_chosen) {
  EXPECT_EQ(choose_instruction_set("avx2", of_2013), InstructionSet::avx2);
  EXPECT_EQ(choose_instruction_set("baseline", of_2013), InstructionSet::baseline);
}

TEST(InstructionSetTest, one_that_the_processor_does_not_run_is_refused) {
  expect_message(refusal("avx512"), {"--instruction-set"});
  expect_message(refusal("AVX2"), {"--instruction-set", "AVX2"});
}

TEST(InstructionSetTest, what_the_system_withholds_is_not_taken_and_told) {
  EXPECT_EQ(choose_instruction_set("auto", without_permission), InstructionSet::avx512);
  expect_message(refusal("amx_bf16", without_permission), {"--instruction-set"});
  expect_message(choice_warning("auto", DType::bf16, without_permission), {});
  EXPECT_EQ(choice_warning("auto", DType::f32, without_permission), "");
  EXPECT_EQ(choice_warning("avx2", DType::bf16, without_permission), "");
  EXPECT_EQ(choice_warning("auto", DType::bf16, of_all), "");
  EXPECT_EQ(choice_warning("auto", DType::bf16, of_2013), "");
}

TEST(InstructionSetTest, one_that_fp32_has_no_use_for_is_told) {
  expect_message(choice_warning("amx_bf16", DType::f32, of_all), {"--instruction-set"});
  EXPECT_EQ(choice_warning("amx_bf16", DType::bf16, of_all), "");
  EXPECT_EQ(choice_warning("avx512", DType::f32, of_all), "");
  EXPECT_EQ(choice_warning("auto", DType::f32, of_all), "");
}

TEST(InstructionSetTest, names_have_their_options) {
  EXPECT_EQ(option_named("AMX BF16"), "amx_bf16");
  EXPECT_EQ(option_named("SVE"), "");
}

TEST(InstructionSetTest, a_device_computes_with_the_chosen_one_and_says_so) {
  const std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = 1, .instruction_set = "baseline"});
  EXPECT_THAT(device->description(), testing::EndsWith(", SSE2, 1 thread"));
  EXPECT_EQ(device->plan_conditions(), "cpu: SSE2, f32");
}

TEST(InstructionSetTest, vectors_are_as_wide_with_products_of_bf16_as_without) {
  EXPECT_EQ(lanes_of(InstructionSet::avx512_bf16), lanes_of(InstructionSet::avx512));
  EXPECT_TRUE(multiplies_bf16(InstructionSet::avx512_bf16));
  EXPECT_FALSE(multiplies_bf16(InstructionSet::avx512));
  EXPECT_TRUE(runs_here(InstructionSet::avx512) || !runs_here(InstructionSet::avx512_bf16));
  EXPECT_EQ(lanes_of(InstructionSet::amx_bf16), lanes_of(InstructionSet::avx512));
  EXPECT_TRUE(multiplies_bf16_tiles(InstructionSet::amx_bf16));
  EXPECT_FALSE(multiplies_bf16_tiles(InstructionSet::avx512_bf16));
}

TEST(InstructionSetTest, all_loops_of_a_set_have_its_lanes) {
  for (const InstructionSetFacts& facts : instruction_sets) {
    if (!runs_here(facts.set)) continue;
    const InstructionSetLoops& loops = loops_of(facts.set);
    EXPECT_EQ(loops.products.lanes, facts.lanes) << facts.name;
    for (const DType storage : {DType::f32, DType::bf16}) {
      EXPECT_EQ(loops.vectors.of(storage).lanes, facts.lanes) << facts.name;
      EXPECT_EQ(loops.winograd.of(storage).stride1.lanes, facts.lanes) << facts.name;
    }
    EXPECT_LE(facts.lanes, max_lanes);
  }
}

TEST(InstructionSetTest, each_form_of_winograd_has_a_table_of_its_own) {
  const WinogradForms& forms = loops_of(InstructionSet::baseline).winograd.f32;
  EXPECT_EQ(forms.of(WinogradForm::stride1).points, 36);
  EXPECT_EQ(forms.of(WinogradForm::stride2).points, 81);
  EXPECT_EQ(forms.of(WinogradForm::stride2).tile_size, 4);
  EXPECT_EQ(forms.of(WinogradForm::stride2_backward_data).tile_size, 8);
}

// It rounds to bf16 by its own instruction, so its vectors and Winograd's loops are compiled for it too.
TEST(InstructionSetTest, a_set_with_products_of_bf16_has_all_loops_of_its_own) {
  if (!runs_here(InstructionSet::avx512_bf16)) GTEST_SKIP() << "this processor has no products of bf16";
  const InstructionSetLoops& wider = loops_of(InstructionSet::avx512_bf16);
  const InstructionSetLoops& extended = loops_of(InstructionSet::avx512);
  EXPECT_NE(&wider.vectors, &extended.vectors);
  EXPECT_NE(&wider.winograd, &extended.winograd);
  EXPECT_NE(&wider.products, &extended.products);
}

// Its bits are those of AVX-512, so a checkpoint moves between the two without a warning.
TEST(InstructionSetTest, a_device_of_fp32_is_not_named_for_products_of_bf16) {
  if (!runs_here(InstructionSet::avx512_bf16)) GTEST_SKIP() << "this processor has no products of bf16";
  const auto conditions = [](DType precision) {
    return cpu::open_cpu_device({.threads = 1, .instruction_set = "avx512_bf16", .precision = precision})
        ->plan_conditions();
  };
  EXPECT_EQ(conditions(DType::f32), "cpu: AVX-512, f32");
  EXPECT_EQ(conditions(DType::bf16), "cpu: AVX-512 BF16, bf16");
}

TEST(InstructionSetTest, tiles_multiply_in_direct_convolutions_alone) {
  if (!runs_here(InstructionSet::amx_bf16)) GTEST_SKIP() << "this processor has no tiles";
  const InstructionSetLoops& tiles = loops_of(InstructionSet::amx_bf16);
  const InstructionSetLoops& vectors = loops_of(InstructionSet::avx512_bf16);
  EXPECT_NE(&tiles.products, &vectors.products);
  EXPECT_EQ(&tiles.vectors, &vectors.vectors);
  EXPECT_EQ(&tiles.winograd, &vectors.winograd);
  EXPECT_EQ(cpu::open_cpu_device({.threads = 1, .precision = DType::f32})->plan_conditions(), "cpu: AVX-512, f32");
  EXPECT_EQ(cpu::open_cpu_device({.threads = 1, .precision = DType::bf16})->plan_conditions(), "cpu: AMX BF16, bf16");
}

TEST(InstructionSetTest, direct_convolutions_are_named_among_what_bits_depend_on) {
  const std::unique_ptr<Device> device =
      cpu::open_cpu_device({.threads = 1, .instruction_set = "baseline", .direct_convolutions = true});
  EXPECT_THAT(device->description(), testing::EndsWith(", SSE2, direct convolutions, 1 thread"));
  EXPECT_EQ(device->plan_conditions(), "cpu: SSE2, f32, direct convolutions");
}

}  // namespace lockstep::cpu::instruction_set_test
