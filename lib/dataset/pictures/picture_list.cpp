#include "dataset/pictures/picture_list.hpp"

#include <nlohmann/json.hpp>
#include <span>

#include "dataset/shards/hash.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr std::array<Choice<SourceSplit>, 3> splits_of_text{
    {{"train", SourceSplit::train}, {"test", SourceSplit::test}, {"validation", SourceSplit::validation}}};

// MessagePack, because file names need not be UTF-8. The fingerprint of this text identifies a conversion. So members
// that earlier versions lacked are omitted if they are empty.
std::string text_of(const PictureList& list, const std::filesystem::path& folder, const std::vector<OddFile>& odd) {
  Json left_out = Json::array();
  for (const OddFile& file : odd) left_out.push_back({file.file, file.remark});
  Json json = {{"folder", folder.string()},
               {"classes", list.classes},
               {"archives", list.archives},
               {"left_out", left_out},
               {"test_words", list.test_origin}};
  for (const auto& split : splits_of_text) {
    if (split.value == SourceSplit::validation && list.validation.empty()) continue;
    Json& lines = json[split.name] = Json::array();
    for (const PictureFile& file : list.files(split.value)) {
      lines.push_back({file.name, file.bytes, file.label, file.archive, file.offset});
    }
  }
  if (!list.validation.empty()) json["validation_words"] = list.validation_origin;
  const std::vector<std::uint8_t> bytes = Json::to_msgpack(json);
  return {bytes.begin(), bytes.end()};
}

std::string hash_of(const std::string& text) { return xxh3_128_hex(std::as_bytes(std::span(text))); }

}  // namespace

std::string fingerprint(const PictureList& list) {
  return hash_of(text_of(list, std::filesystem::weakly_canonical(list.folder), {}));
}

std::string earlier_fingerprint(const PictureList& list) { return hash_of(to_text(list)); }

std::string to_text(const PictureList& list) { return text_of(list, list.folder, list.left_out); }

PictureList picture_list_from(const std::string& text) {
  const Json json = Json::from_msgpack(text);
  PictureList list;
  list.folder = json.at("folder").get<std::string>();
  list.classes = json.at("classes").get<std::vector<std::string>>();
  list.archives = json.at("archives").get<std::vector<std::string>>();
  list.test_origin = json.at("test_words").get<std::string>();
  list.validation_origin = json.value("validation_words", "");
  for (const auto& split : splits_of_text) {
    if (!json.contains(split.name)) continue;
    for (const Json& file : json.at(split.name)) {
      list.files(split.value)
          .push_back({file.at(0).get<std::string>(), file.at(1).get<std::int64_t>(), file.at(2).get<std::int32_t>(),
                      file.at(3).get<std::int32_t>(), file.at(4).get<std::int64_t>()});
    }
  }
  for (const Json& file : json.at("left_out")) {
    list.left_out.push_back({file.at(0).get<std::string>(), true, file.at(1).get<std::string>()});
  }
  return list;
}

}  // namespace lockstep
