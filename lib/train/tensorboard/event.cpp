#include "train/tensorboard/event.hpp"

#include <array>
#include <bit>

#include "train/tensorboard/protobuf.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78U : crc >> 1;
    table[byte] = crc;
  }
  return table;
}();

// Field numbers.
namespace event {
constexpr std::uint32_t wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7;
}
namespace session_log {
constexpr std::uint32_t status = 1;
constexpr std::uint64_t start = 1;
}  // namespace session_log
namespace summary {
constexpr std::uint32_t value = 1;
}
namespace summary_value {
constexpr std::uint32_t tag = 1, simple_value = 2, tensor = 8, metadata = 9;
}
namespace summary_metadata {
constexpr std::uint32_t plugin_data = 1, plugin_name = 1;
}
namespace tensor {
constexpr std::uint32_t dtype = 1, shape = 2, string_value = 8;
constexpr std::uint64_t string_type = 7;
}  // namespace tensor

std::string begin_event(const EventPlace& place) {
  return double_field(event::wall_time, place.time) + number_field(event::step, static_cast<std::uint64_t>(place.step));
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) crc = (crc >> 8) ^ crc_table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return std::rotr(~crc, 15) + 0xa282ead8U;
}

std::string tf_record(std::string_view bytes) {
  const std::string length = little_endian(static_cast<std::uint64_t>(bytes.size()));
  return (length + little_endian(masked_crc32c(length))).append(bytes) + little_endian(masked_crc32c(bytes));
}

std::string version_event(double time) {
  return double_field(event::wall_time, time) + bytes_field(event::file_version, "brain.Event:2");
}

std::string restart_event(const EventPlace& place) {
  return begin_event(place) + bytes_field(event::session_log, number_field(session_log::status, session_log::start));
}

std::string scalars_event(const EventPlace& place, std::span<const Scalar> scalars) {
  std::string values;
  for (const Scalar& scalar : scalars) {
    values += bytes_field(summary::value, bytes_field(summary_value::tag, scalar.tag) +
                                              float_field(summary_value::simple_value, scalar.value));
  }
  return begin_event(place) + bytes_field(event::summary, values);
}

std::string text_event(const EventPlace& place, std::string_view tag, std::string_view text) {
  const std::string message = number_field(tensor::dtype, tensor::string_type) + bytes_field(tensor::shape, "") +
                              bytes_field(tensor::string_value, text);
  const std::string metadata =
      bytes_field(summary_metadata::plugin_data, bytes_field(summary_metadata::plugin_name, "text"));
  const std::string value = bytes_field(summary_value::tag, tag) + bytes_field(summary_value::tensor, message) +
                            bytes_field(summary_value::metadata, metadata);
  return begin_event(place) + bytes_field(event::summary, bytes_field(summary::value, value));
}

}  // namespace lockstep
