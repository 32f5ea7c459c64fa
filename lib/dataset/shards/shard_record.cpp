#include "dataset/shards/shard_record.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/json_text.hpp"

namespace lockstep {

using Json = nlohmann::json;

void PixelSums::add(std::span<const std::uint8_t> pixels_of_picture) {
  const std::size_t channels = values.size();
  if (channels == 0) return;
  assert(pixels_of_picture.size() % channels == 0);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t at = channel; at < pixels_of_picture.size(); at += channels) {
      values[channel] += pixels_of_picture[at];
      squares[channel] += std::uint64_t{pixels_of_picture[at]} * pixels_of_picture[at];
    }
  }
  pixels += pixels_of_picture.size() / channels;
}

void PixelSums::add(const PixelSums& others) {
  assert(others.values.size() == values.size());
  std::ranges::transform(values, others.values, values.begin(), std::plus<>());
  std::ranges::transform(squares, others.squares, squares.begin(), std::plus<>());
  pixels += others.pixels;
}

void PixelSums::set_statistics(Manifest& manifest) const {
  manifest.mean.clear();
  manifest.deviation.clear();
  const auto count = static_cast<double>(pixels);
  for (std::size_t channel = 0; channel < values.size(); ++channel) {
    const double mean = static_cast<double>(values[channel]) / count;
    const double variance = static_cast<double>(squares[channel]) / count - mean * mean;
    const double deviation = std::sqrt(std::max(variance, 0.0)) / 255;
    manifest.mean.push_back(static_cast<float>(mean / 255));
    manifest.deviation.push_back(std::max(static_cast<float>(deviation), smallest_deviation));
  }
}

std::string to_text(const ShardRecord& record) {
  Json odd_files = Json::array();
  for (const OddFile& odd : record.odd_files) odd_files.push_back({odd.file, odd.is_skipped, odd.remark});
  return json_text({{"file", record.entry.file},
                    {"samples", record.entry.samples},
                    {"bytes", record.entry.bytes},
                    {"hash", record.entry.hash},
                    {"block_hashes", record.entry.block_hashes},
                    {"values", record.sums.values},
                    {"squares", record.sums.squares},
                    {"pixels", record.sums.pixels},
                    {"odd_files", odd_files}});
}

std::optional<ShardRecord> shard_record_from(const std::string& text, std::int64_t channels) try {
  const Json json = parse_json(text);
  ShardRecord record{{}, PixelSums(channels), {}};
  record.entry = {json.at("file").get<std::string>(), json.at("samples").get<std::int64_t>(),
                  json.at("bytes").get<std::int64_t>(), json.at("hash").get<std::string>(),
                  json.at("block_hashes").get<std::vector<std::string>>()};
  record.sums.values = json.at("values").get<std::vector<std::uint64_t>>();
  record.sums.squares = json.at("squares").get<std::vector<std::uint64_t>>();
  record.sums.pixels = json.at("pixels").get<std::uint64_t>();
  for (const Json& odd : json.at("odd_files")) {
    record.odd_files.push_back({odd.at(0).get<std::string>(), odd.at(1).get<bool>(), odd.at(2).get<std::string>()});
  }
  const auto count = static_cast<std::size_t>(channels);
  if (record.sums.values.size() != count || record.sums.squares.size() != count) return std::nullopt;
  return record;
} catch (const Json::exception&) {
  return std::nullopt;
}

}  // namespace lockstep
