// Damaged EXIF, as libexif is given it: whatever is changed, an orientation from 1 to 8 comes out. LOCKSTEP_MUTATIONS
// asks for more rounds.
#include <gtest/gtest.h>

#include <span>

#include "picture/exif.hpp"
#include "picture/made_exif.hpp"
#include "support/mutation.hpp"

namespace lockstep::test::exif_damage_test {

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string hexadecimal(const std::string& bytes) {
  std::string text = "\nexif\n1\n";
  for (const char byte : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    text += {digits[static_cast<std::uint8_t>(byte) >> 4], digits[static_cast<std::uint8_t>(byte) & 15]};
  }
  return text;
}

// Notes of makers are read by code of their own, chosen by how the notes begin or by the maker's name.
std::vector<std::string> cameras() {
  using namespace std::string_literals;
  std::vector<std::string> files;
  for (const char order : {'I', 'M'}) {
    for (const auto& [maker, notes] :
         std::vector<std::pair<std::string, std::string>>{{"Canon\0"s, ""s},
                                                          {"OLYMPUS\0"s, "OLYMP\0\1\0"s},
                                                          {"OLYMPUS II\0"s, "OLYMPUS\0II\3\0"s},
                                                          {"NIKON\0"s, "Nikon\0\1\0"s},
                                                          {"NIKON CORPORATION\0"s, "Nikon\0\2\0\0\0MM\0*\0\0\0\x08"s},
                                                          {"FUJIFILM\0"s, "FUJIFILM\x0c\0\0\0"s},
                                                          {"PENTAX\0"s, "AOC\0II"s},
                                                          {"CASIO\0"s, "QVC\0\0\0"s},
                                                          {"SANYO\0"s, "SANYO\0\1\0"s},
                                                          {"EPSON\0"s, "EPSON\0\1\0"s},
                                                          {"Apple\0"s, "Apple iOS\0\0\1MM"s}}) {
      files.push_back(camera_exif(maker, notes, order));
    }
    files.push_back(exif_orientation_only(6, 4, order));
  }
  return files;
}

TEST(ExifDamage, no_damage_makes_reading_crash_or_believe) {
  using namespace std::string_literals;
  const std::vector<std::string> files = cameras();
  for (const std::string& file : files) ASSERT_EQ(tiff_orientation(bytes_of(file)), 6);
  const std::uint64_t rounds = mutation_rounds(3000);
  std::uint64_t turned = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::string damaged = mutated(files[round % files.size()], round / files.size());
    const std::string segment = "Exif\0\0"s + damaged;
    const int orientation = tiff_orientation(bytes_of(damaged));
    ASSERT_GE(orientation, 1);
    ASSERT_LE(orientation, 8);
    ASSERT_EQ(exif_orientation(bytes_of(segment)), orientation);
    if (round % 16 == 0) {
      ASSERT_EQ(profile_orientation(hexadecimal(segment)), orientation);
      const int of_damaged_digits = profile_orientation(mutated(hexadecimal(segment), round));
      ASSERT_TRUE(of_damaged_digits >= 1 && of_damaged_digits <= 8);
    }
    if (orientation == 6) ++turned;
  }
  EXPECT_GT(turned, rounds / 10);
}

}  // namespace lockstep::test::exif_damage_test
