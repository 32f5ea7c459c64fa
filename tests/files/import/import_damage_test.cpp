// Damage to weights that another program wrote: they have no hash that tells it, so every byte may reach the readers.
#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "files/import/hdf5_tensors.hpp"
#include "files/import/safetensors.hpp"
#include "support/mutation.hpp"

namespace lockstep::import_damage_test {

class ImportDamageTest : public testing::TestWithParam<const char*> {};

TEST_P(ImportDamageTest, is_refused_or_leaves_tensors_that_the_file_can_hold) {
  const std::string name = GetParam();
  const std::string whole = read_file(std::filesystem::path(LOCKSTEP_GOLDEN_DIR "/foreign") / name, 1 << 20);
  const bool is_hdf5 = name.ends_with(".h5");
  std::uint64_t refused = 0;
  const std::uint64_t rounds = mutation_rounds(1000);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::string damaged = mutated(whole, round);
    const WeightBytes file("damaged", damaged);
    try {
      std::size_t bytes = 0;
      for (const ParameterStore::Entry& entry : is_hdf5 ? read_hdf5_tensors(file) : read_safetensors(file)) {
        bytes += 2 * entry.values.size();  // the smallest type has two bytes
      }
      EXPECT_LE(bytes, damaged.size()) << round;
      if (is_hdf5) has_root_attribute(file, "format");
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.failure(), Failure::bad_data) << round << ": " << error.what();
    }
  }
  EXPECT_GT(refused, rounds / 20);
  EXPECT_LT(refused, rounds);
}

INSTANTIATE_TEST_SUITE_P(, ImportDamageTest,
                         testing::Values("state_dict.h5", "state_dict_attributes.h5", "tensors.safetensors",
                                         "tensors_bfloat16.safetensors"),
                         [](const auto& one) {
                           std::string test = one.param;
                           for (char& letter : test) letter = letter == '.' ? '_' : letter;
                           return test;
                         });

}  // namespace lockstep::import_damage_test
