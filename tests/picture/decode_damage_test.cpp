// Damaged picture files: whatever is changed in one, decoding ends with a picture or with words. LOCKSTEP_MUTATIONS
// asks for more rounds.
#include <gtest/gtest.h>

#include "picture/decode.hpp"
#include "picture/golden_pictures.hpp"
#include "picture/jpeg.hpp"
#include "picture/made_exif.hpp"
#include "picture/made_png.hpp"
#include "support/mutation.hpp"

namespace lockstep::test::decode_damage_test {

// Of all kinds: JPEG, and PNG of 8 and 16 bits, interlaced, with EXIF before and after its pixels.
std::vector<std::string> whole_files() {
  using namespace std::string_literals;
  std::vector<std::string> files;
  const GoldenPictures golden;
  for (const char* const name :
       {"jpeg", "jpeg_gray", "jpeg_cmyk", "jpeg_progressive", "jpeg_exif_6", "png", "png_palette", "png_transparent"}) {
    const std::vector<std::byte> file = golden.file(name);
    files.emplace_back(reinterpret_cast<const char*>(file.data()), file.size());
  }
  const std::string exif = png_chunk("eXIf", exif_orientation_only(6, 3, 'M'));
  const std::string passes = "\0\x01"s + "\0\x03"s + "\0\x07\x09"s + "\0\x02"s + "\0\x08"s + "\0\x04\x05\x06"s;
  files.push_back(wide_gray_png({0, 1000, 4095}, png_chunk("sBIT", "\x0c")));
  files.push_back(make_png({3, 3, 8, 0, 1}, passes, exif));
  files.push_back(make_png({2, 1, 8, 2}, "\0\x10\x20\x30\x80\x90\xa0"s, png_chunk("gAMA", big_endian(100000)), exif));
  return files;
}

TEST(DecodeDamage, a_damaged_file_is_a_picture_or_a_fault) {
  const std::vector<std::string> files = whole_files();
  std::uint64_t faults = 0;
  std::uint64_t pictures = 0;
  const std::uint64_t rounds = mutation_rounds(3000);
  for (const std::string& text : files) {
    for (std::uint64_t round = 0; round < rounds / files.size(); ++round) {
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

}  // namespace lockstep::test::decode_damage_test
