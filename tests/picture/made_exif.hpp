// EXIF as cameras write it, of any order of bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::test {

// `order` is 'I' (the lowest byte first) or 'M'.
inline std::string exif_number(std::uint32_t value, int bytes, char order) {
  std::string text;
  for (int at = 0; at < bytes; ++at) text += static_cast<char>(value >> 8 * at);
  if (order == 'M') std::ranges::reverse(text);
  return text;
}

struct ExifField {
  std::uint32_t tag;
  std::uint32_t type;  // 1 BYTE, 2 ASCII, 3 SHORT, 4 LONG, 7 UNDEFINED
  std::uint32_t count;
  std::string value;
};

// A directory that begins `at` bytes after the start of the TIFF header, with what does not fit into its fields behind
// it. `next`: where the next one begins; 0: none.
inline std::string exif_directory(const std::vector<ExifField>& fields, std::uint32_t at, std::uint32_t next,
                                  char order) {
  constexpr std::uint32_t field_bytes = 12;
  std::string directory = exif_number(static_cast<std::uint32_t>(fields.size()), 2, order);
  std::string values;
  const auto end = static_cast<std::uint32_t>(at + 2 + fields.size() * field_bytes + 4);
  for (const ExifField& field : fields) {
    directory +=
        exif_number(field.tag, 2, order) + exif_number(field.type, 2, order) + exif_number(field.count, 4, order);
    if (field.value.size() <= 4) {
      std::string value = field.value;
      value.resize(4);
      directory += value;
    } else {
      directory += exif_number(static_cast<std::uint32_t>(end + values.size()), 4, order);
      values += field.value;
    }
  }
  return directory + exif_number(next, 4, order) + values;
}

inline std::string tiff_header(char order) {
  return std::string(2, order) + exif_number(42, 2, order) + exif_number(8, 4, order);
}

// With the orientation alone, as a BYTE, SHORT or LONG.
inline std::string exif_orientation_only(std::uint32_t orientation, std::uint32_t type, char order) {
  const int bytes = type == 1 ? 1 : type == 3 ? 2 : 4;
  return tiff_header(order) + exif_directory({{0x0112, type, 1, exif_number(orientation, bytes, order)}}, 8, 0, order);
}

// A camera's, with notes of its maker, which begin with `notes`.
inline std::string camera_exif(const std::string& maker, const std::string& notes, char order) {
  constexpr std::uint32_t exif_at = 200;
  constexpr std::uint32_t thumbnail_at = 600;
  std::string text = tiff_header(order) + exif_directory({{0x010f, 2, static_cast<std::uint32_t>(maker.size()), maker},
                                                          {0x0112, 3, 1, exif_number(6, 2, order)},
                                                          {0x8769, 4, 1, exif_number(exif_at, 4, order)},
                                                          {0x8825, 4, 1, exif_number(exif_at, 4, order)}},
                                                         8, thumbnail_at, order);
  text.resize(exif_at);
  const std::string directory =
      exif_directory({{1, 3, 4, std::string(8, '\1')}, {2, 3, 1, exif_number(7, 2, order)}, {4, 4, 2, "12345678"}},
                     static_cast<std::uint32_t>(notes.size()), 0, order);
  text += exif_directory({{0x9000, 7, 4, "0230"},
                          {0x927c, 7, static_cast<std::uint32_t>(notes.size() + directory.size()), notes + directory},
                          {0x9286, 7, 12, std::string("ASCII\0\0\0text", 12)},
                          {0xa005, 4, 1, exif_number(thumbnail_at, 4, order)}},
                         exif_at, 0, order);
  text.resize(thumbnail_at);
  return text +
         exif_directory({{0x0201, 4, 1, exif_number(700, 4, order)}, {0x0202, 4, 1, exif_number(40, 4, order)}},
                        thumbnail_at, 0, order) +
         std::string(100, '\xd8');
}

}  // namespace lockstep::test
