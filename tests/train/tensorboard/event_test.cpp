// Bytes of events, as TensorBoard 2.21's own protocol buffers and RecordWriter have them.
#include "train/tensorboard/event.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace lockstep::event_test {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::uint32_t crc32c(std::string_view bytes) { return std::rotl(masked_crc32c(bytes) - 0xa282ead8U, 15); }

// RFC 3720, B.4, and the check value of catalogues.
TEST(EventTest, sums_are_crc32c) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(EventTest, a_record_is_framed_by_its_length_and_sums) {
  EXPECT_EQ(hex(tf_record(version_event(1.5))),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
}

TEST(EventTest, events_have_the_bytes_of_their_protocol) {
  const EventPlace place{1.5, 300};
  EXPECT_EQ(hex(restart_event(place)), "09000000000000f83f10ac023a020801");
  EXPECT_EQ(hex(scalars_event(place, std::vector<Scalar>{{"loss/training", 2.5F}, {"a", -1.0F}})),
            "09000000000000f83f10ac022a200a140a0d6c6f73732f747261696e696e6715000020400a080a016115000080bf");
  EXPECT_EQ(hex(text_event(place, "recipe", "    lr")),
            "09000000000000f83f10ac022a220a200a06726563697065420c080712004206202020206c724a080a060a0474657874");
}

}  // namespace lockstep::event_test
