#include "dataset/pictures/sample_bits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"
#include "picture/decode.hpp"
#include "picture/picture_fault.hpp"
#include "picture/png.hpp"

namespace lockstep {
namespace {

constexpr int doubtful_bits = 12;
constexpr std::size_t whole_file = std::size_t{1} << 28;
// PNG signature and IHDR chunk, which comes first; byte 24 of the file is the bit depth.
constexpr std::size_t head_bytes = 33;
constexpr std::size_t place_of_depth = 24;

struct Findings {
  int largest = -1;            // largest value in files without an sBIT chunk; -1: there are none
  std::string file;            // the file with that value
  int low_bits = 0;            // bits stated by sBIT chunks in files whose values fit into them; 0: none
  bool has_high_bits = false;  // some file has its significant bits in the highest positions
};

// The whole file, if it is a 16-bit PNG.
std::optional<std::string> wide_png(const PictureFiles& files, std::int64_t index) {
  const std::string head = files.read(index, head_bytes);
  if (picture_format(std::as_bytes(std::span(head))) != PictureFormat::png) return std::nullopt;
  if (head.size() <= place_of_depth || head[place_of_depth] != max_sample_bits) return std::nullopt;
  return files.read(index, whole_file);
}

// Decodes the file only if the judgement can depend on it.
void add(std::span<const std::byte> file, const std::string& name, int deciding_bits, Findings& findings) {
  const int stated_bits = stated_bits_of(file).value_or(0);
  if (stated_bits == 0 ? findings.largest >> deciding_bits > 0 : findings.has_high_bits) return;
  const int largest = largest_sample_of(file);
  if (stated_bits == 0) {
    if (largest > findings.largest) findings.file = name;
    findings.largest = std::max(findings.largest, largest);
  } else if (largest >> stated_bits > 0) {
    findings.has_high_bits = true;
  } else if (stated_bits < max_sample_bits) {
    findings.low_bits = std::max(findings.low_bits, stated_bits);
  }
}

// Findings of this rank's share. They include every kind of file, so the judgement does not depend on the shares.
Findings own_findings(const Communicator& world, const PictureFiles& files, int deciding_bits) {
  Findings findings;
  for (std::int64_t index = world.rank(); index < files.count; index += world.size()) {
    const std::optional<std::string> file = wide_png(files, index);
    if (!file) continue;
    try {
      add(std::as_bytes(std::span(*file)), files.name(index), deciding_bits, findings);
    } catch (const PictureFault&) {
      continue;  // reported when the file is decoded
    }
  }
  return findings;
}

Findings findings_of_all(const Communicator& world, const Findings& own) {
  Findings all;
  all.has_high_bits = world.max(own.has_high_bits ? 1 : 0) > 0;
  all.low_bits = static_cast<int>(world.max(own.low_bits));
  for (const std::string& text : world.all_gather(fmt::format("{} {}", own.largest, own.file))) {
    const std::size_t space = text.find(' ');
    const int value = parse_number<int>(text.substr(0, space), {-1, 1 << max_sample_bits}).value_or(-1);
    if (value <= all.largest) continue;
    all.largest = value;
    all.file = text.substr(space + 1);
  }
  return all;
}

}  // namespace

JudgedBits sample_bits_of(const Communicator& world, const PictureFiles& files, std::optional<std::int64_t> stated) {
  if (stated == max_sample_bits) return {{max_sample_bits, BitPosition::highest}, stated};
  const int bits = stated ? static_cast<int>(*stated) : doubtful_bits;
  const Findings found = findings_of_all(world, own_findings(world, files, bits));
  const bool exceeds = found.largest >> bits > 0;
  if (stated) {
    require(!exceeds, Failure::usage,
            "'{}' has the value {}, which does not fit into {} bits (--sample-bits). Choose more bits, or convert "
            "files of other bit depths separately.",
            printable(found.file), found.largest, bits);
    return {{bits, BitPosition::lowest}, stated};
  }
  require(found.largest <= 0 || exceeds, Failure::usage,
          "no value in the 16-bit PNG files exceeds 4095: the largest is {}, in '{}'. 12-bit samples that are read as "
          "16 bits would be nearly black. Pass --sample-bits 12 or --sample-bits 16.",
          found.largest, printable(found.file));
  if (found.has_high_bits || found.low_bits == 0) return {{max_sample_bits, BitPosition::highest}};
  // A manifest holds one number of bits. If some files lack the chunk, they have 16 bits, so nothing is noted.
  const bool is_all_stated = found.largest < 0;
  return {{max_sample_bits, BitPosition::lowest},
          is_all_stated ? std::optional<std::int64_t>(found.low_bits) : std::nullopt};
}

}  // namespace lockstep
