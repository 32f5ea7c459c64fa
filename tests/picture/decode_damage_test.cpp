// Damaged picture files: whatever is changed in one, decoding ends with a picture or with words. LOCKSTEP_MUTATIONS
// asks for more rounds.
#include <gtest/gtest.h>

#include "picture/decode.hpp"
#include "picture/golden_pictures.hpp"
#include "picture/jpeg.hpp"
#include "support/mutation.hpp"

namespace lockstep::testing {
namespace {

TEST(DecodeDamage, a_damaged_file_is_a_picture_or_a_fault) {
  const GoldenPictures golden;
  std::uint64_t faults = 0;
  std::uint64_t pictures = 0;
  const std::uint64_t rounds = mutation_rounds(3000);
  for (const char* const name :
       {"jpeg", "jpeg_gray", "jpeg_cmyk", "jpeg_progressive", "jpeg_exif_6", "png", "png_palette", "png_transparent"}) {
    const std::vector<std::byte> whole = golden.file(name);
    const std::string text(reinterpret_cast<const char*>(whole.data()), whole.size());
    for (std::uint64_t round = 0; round < rounds / 8; ++round) {
      const std::string bytes = mutated(text, round);
      const auto file = std::as_bytes(std::span(bytes));
      try {
        const DecodedPicture decoded = decode_picture(file);
        const PictureSize size = decoded.picture.size;
        ASSERT_EQ(decoded.picture.pixels.size(), static_cast<std::size_t>(size.height * size.width * 3));
        if (decoded.is_progressive_jpeg) sequential_jpeg(file);
        ++pictures;
      } catch (const PictureFault& fault) {
        ASSERT_NE(fault.what(), std::string());
        ++faults;
      }
    }
  }
  EXPECT_GT(faults, rounds / 10);
  EXPECT_GT(pictures, rounds / 10);
}

}  // namespace
}  // namespace lockstep::testing
