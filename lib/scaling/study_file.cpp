#include "scaling/study_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "base/text/table_cell.hpp"
#include "device/precision.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// Its key sorts first, so that a file's first bytes identify its format.
constexpr std::string_view about = "scaling study of Lockstep, version 2";
constexpr std::string_view any_version = "scaling study of Lockstep, version ";
constexpr std::string_view csv_start = "ranks,nodes,batch_per_rank,";

constexpr std::size_t file_limit_bytes = std::size_t{64} << 20;
constexpr int nesting_limit = 8;
constexpr std::size_t text_limit_bytes = 4096;
constexpr std::int64_t ranks_limit = max_study_ranks;
constexpr std::int64_t count_limit = std::int64_t{1} << 40;
constexpr std::size_t points_limit = 1000;
constexpr std::size_t repeats_limit = 1000;
constexpr std::size_t buckets_limit = 100'000;
constexpr double seconds_limit = 1e6;
constexpr double least_seconds = 1e-9;  // lower bound of nonzero times

// An object of the file and its path, such as "points[3].", so that every error names the field.
class Fields {
 public:
  Fields(const Json& object, std::string place, std::string_view file)
      : object_(object), place_(std::move(place)), file_(file) {
    require(object.is_object(), Failure::bad_data,
            "'{}' is not a scaling study: {} is not an object. Choose a study.json.", file_,
            place_.empty() ? "it" : place_.substr(0, place_.size() - 1));
  }

  // Whether a field exists that earlier versions did not write.
  bool has(const char* name) const { return object_.contains(name); }

  std::int64_t whole(const char* name, std::int64_t least, std::int64_t most) const {
    const Json& value = at(name);
    const bool fits =
        value.is_number_integer() &&
        (!value.is_number_unsigned() || value.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX));
    require_field(fits && value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most, name,
                  fmt::format("a whole number from {} to {}", least, most));
    return value.get<std::int64_t>();
  }

  double number(const char* name, double least, double most) const { return checked(at(name), name, least, most); }

  std::vector<double> numbers(const char* name, std::size_t least_count, double least) const {
    std::vector<double> values;
    for (const Json& value : list(name, least_count, repeats_limit)) {
      values.push_back(checked(value, name, least, seconds_limit));
    }
    return values;
  }

  std::string text(const char* name) const { return checked_text(at(name), name); }

  std::vector<std::string> texts(const char* name, std::size_t most) const {
    std::vector<std::string> values;
    for (const Json& value : list(name, 0, most)) values.push_back(checked_text(value, name));
    return values;
  }

  std::map<std::string, std::string> named_texts(const char* name) const {
    const Json& object = at(name);
    require_field(object.is_object() && object.size() <= 100, name, "an object of at most 100 strings");
    std::map<std::string, std::string> values;
    for (const auto& [key, value] : object.items()) values.emplace(key, checked_text(value, name));
    return values;
  }

  const Json& list(const char* name, std::size_t least, std::size_t most) const {
    const Json& value = at(name);
    require_field(value.is_array() && value.size() >= least && value.size() <= most, name,
                  fmt::format("a list of {} to {} elements", least, most));
    return value;
  }

  Fields member(const char* name, std::size_t index, const Json& value) const {
    return {value, fmt::format("{}{}[{}].", place_, name, index), file_};
  }
  Fields member(const char* name) const { return {at(name), fmt::format("{}{}.", place_, name), file_}; }

  void require_field(bool condition, const char* name, std::string_view expected) const {
    require(condition, Failure::bad_data, "'{}' is damaged: '{}{}' is not {}. Repeat the study.", file_, place_, name,
            expected);
  }

 private:
  const Json& at(const char* name) const {
    const auto found = object_.find(name);
    require_field(found != object_.end(), name, "present");
    return *found;
  }

  double checked(const Json& value, const char* name, double least, double most) const {
    require_field(value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= least &&
                      value.get<double>() <= most,
                  name, fmt::format("made of numbers from {:g} to {:g}", least, most));
    return value.get<double>();
  }

  std::string checked_text(const Json& value, const char* name) const {
    require_field(value.is_string() && value.get_ref<const std::string&>().size() <= text_limit_bytes, name,
                  fmt::format("made of strings of at most {} bytes", text_limit_bytes));
    return value.get<std::string>();
  }

  const Json& object_;
  std::string place_;
  std::string_view file_;
};

Json json_of(const StudySetup& setup) {
  return {{"threads", setup.threads},          {"bucket_mib", setup.bucket_mib},
          {"precision", setup.precision},      {"local_steps", setup.exchange.local_steps},
          {"servers", setup.exchange.servers}, {"powersgd_rank", setup.exchange.powersgd_rank}};
}

StudySetup setup_of(const Fields& fields) {
  StudySetup setup{fields.whole("threads", 0, 4096), fields.whole("bucket_mib", 0, 1024), fields.text("precision")};
  fields.require_field(find_choice(precisions, setup.precision) != nullptr, "precision",
                       fmt::format("one of {}", choice_names(precisions)));
  if (fields.has("servers")) {
    setup.exchange = {fields.whole("local_steps", 1, 65536), fields.whole("servers", 0, 65536),
                      fields.whole("powersgd_rank", 0, 64)};
  }
  return setup;
}

Json json_of(const StudyPoint& point) {
  Json parts = Json::object();
  Json buckets = Json::array();
  Json sums = Json::array();
  Json ranks = Json::array();
  for (std::size_t part = 0; part < step_part_count; ++part) {
    parts[std::string(name_of(static_cast<StepPart>(part)))] = point.parts[part];
  }
  for (const Bucket& bucket : point.buckets) {
    buckets.push_back({{"bytes", bucket.bytes}, {"ready", bucket.ready}, {"skew_seconds", bucket.skew}});
  }
  for (const MeasuredAllReduce& sum : point.sums) sums.push_back({{"bytes", sum.bytes}, {"seconds", sum.seconds}});
  for (const RankTimes& rank : point.by_rank) {
    ranks.push_back({{"host", rank.host}, {"input_seconds", rank.input}, {"arrival_seconds", rank.arrival}});
  }
  return {{"ranks", point.grid.ranks},
          {"nodes", point.grid.nodes},
          {"batch_per_rank", point.batch_per_rank},
          {"setup", json_of(point.setup)},
          {"memory_bytes", point.memory_bytes},
          {"step_seconds", point.step_seconds},
          {"other_cores", point.other_cores},
          {"part_seconds", parts},
          {"buckets", buckets},
          {"sums", sums},
          {"by_rank", ranks}};
}

StudyPoint point_of(const Fields& fields) {
  StudyPoint point;
  point.grid.ranks = static_cast<int>(fields.whole("ranks", 1, ranks_limit));
  point.grid.nodes = static_cast<int>(fields.whole("nodes", 1, point.grid.ranks));
  point.batch_per_rank = fields.whole("batch_per_rank", 1, ranks_limit);
  point.setup = setup_of(fields.member("setup"));
  fields.member("setup").require_field(point.setup.exchange.servers < point.grid.ranks, "servers",
                                       "smaller than the number of ranks");
  point.memory_bytes = fields.whole("memory_bytes", 0, count_limit << 10);
  point.step_seconds = fields.numbers("step_seconds", 1, least_seconds);
  if (fields.has("other_cores")) point.other_cores = fields.numbers("other_cores", 0, 0);
  const Fields parts = fields.member("part_seconds");
  for (std::size_t part = 0; part < step_part_count; ++part) {
    const auto kind = static_cast<StepPart>(part);
    const bool takes_time = kind == StepPart::forward || kind == StepPart::backward;
    const std::string name(name_of(kind));
    point.parts[part] = parts.numbers(name.c_str(), 0, takes_time ? least_seconds : 0);
    const std::size_t expected = point.parts[0].empty() ? 0 : point.step_seconds.size();
    parts.require_field(point.parts[part].size() == expected, name.c_str(), "as long as 'step_seconds'");
  }
  std::size_t index = 0;
  for (const Json& value : fields.list("buckets", 0, buckets_limit)) {
    const Fields bucket = fields.member("buckets", index++, value);
    point.buckets.push_back({bucket.whole("bytes", 1, count_limit), bucket.number("ready", 0, 1),
                             bucket.number("skew_seconds", 0, seconds_limit)});
  }
  index = 0;
  for (const Json& value : fields.list("sums", 0, buckets_limit)) {
    const Fields sum = fields.member("sums", index++, value);
    point.sums.push_back({sum.whole("bytes", 1, count_limit), sum.numbers("seconds", 1, least_seconds)});
  }
  index = 0;
  for (const Json& value : fields.list("by_rank", 0, static_cast<std::size_t>(point.grid.ranks))) {
    const Fields rank = fields.member("by_rank", index++, value);
    point.by_rank.push_back({rank.text("host"), rank.number("input_seconds", 0, seconds_limit),
                             rank.number("arrival_seconds", 0, seconds_limit)});
  }
  return point;
}

Json parsed(std::string_view text, std::string_view name) {
  Json json = try_parse_json(text, nesting_limit);
  require(!json.is_discarded(), Failure::bad_data,
          "'{}' is not a scaling study: it is not valid JSON. Choose a study.json.", name);
  return json;
}

}  // namespace

std::string study_text(const Study& study) {
  Json points = Json::array();
  for (const StudyPoint& point : study.points) points.push_back(json_of(point));
  Json accuracies = Json::array();
  for (const BatchAccuracy& batch : study.accuracies) {
    accuracies.push_back(
        {{"global_batch", batch.global_batch}, {"by_seed", batch.accuracies}, {"missing", batch.missing}});
  }
  const Json json = {{"about", about},
                     {"model", study.model},
                     {"parameters", study.parameters},
                     {"image_height", study.image_height},
                     {"image_width", study.image_width},
                     {"input", study.input},
                     {"device", study.device},
                     {"setup", json_of(study.setup)},
                     {"reducer", study.reducer},
                     {"cores", study.cores},
                     {"weak_batch", study.weak_batch},
                     {"strong_batch", study.strong_batch},
                     {"points", points},
                     {"accuracy_epochs", study.accuracy_epochs},
                     {"accuracies", accuracies},
                     {"versions", study.versions},
                     {"hosts", study.hosts},
                     {"command", study.command},
                     {"commit", study.commit},
                     {"started", study.started},
                     {"ended", study.ended}};
  return json_lines(json) + "\n";
}

Study parse_study(std::string_view text, std::string_view name) {
  const Json json = parsed(text, name);
  const Fields fields(json, "", name);
  require(fields.text("about") == about, Failure::bad_data,
          "'{}' is not a study of this version: its 'about' is not '{}'. Repeat the study with this version.", name,
          about);
  Study study;
  study.model = fields.text("model");
  study.parameters = fields.whole("parameters", 1, count_limit);
  study.image_height = fields.whole("image_height", 1, ranks_limit);
  study.image_width = fields.whole("image_width", 1, ranks_limit);
  study.input = fields.text("input");
  study.device = fields.text("device");
  study.setup = setup_of(fields.member("setup"));
  study.reducer = fields.text("reducer");
  study.cores = fields.whole("cores", 1, ranks_limit);
  study.weak_batch = fields.whole("weak_batch", 1, ranks_limit);
  study.strong_batch = fields.whole("strong_batch", 1, count_limit);
  std::size_t index = 0;
  for (const Json& value : fields.list("points", 1, points_limit)) {
    study.points.push_back(point_of(fields.member("points", index++, value)));
  }
  study.accuracy_epochs = fields.whole("accuracy_epochs", 0, ranks_limit);
  index = 0;
  for (const Json& value : fields.list("accuracies", 0, points_limit)) {
    const Fields batch = fields.member("accuracies", index++, value);
    study.accuracies.push_back(
        {batch.whole("global_batch", 1, count_limit), batch.numbers("by_seed", 0, 0), batch.text("missing")});
    const std::vector<double>& shares = study.accuracies.back().accuracies;
    batch.require_field(std::ranges::all_of(shares, [](double share) { return share <= 1; }), "by_seed",
                        "made of numbers from 0 to 1");
  }
  study.versions = fields.named_texts("versions");
  study.hosts = fields.texts("hosts", ranks_limit);
  study.command = fields.text("command");
  study.commit = fields.text("commit");
  study.started = fields.text("started");
  study.ended = fields.text("ended");
  return study;
}

Study read_study(const std::filesystem::path& file) {
  return parse_study(read_file(file, file_limit_bytes), file.string());
}

std::string study_csv(const Study& study) {
  std::string table(csv_start);
  table += "threads,bucket_mib,precision,exchange,repeat,step_seconds,samples_per_second";
  for (std::size_t part = 0; part < step_part_count; ++part) {
    table += fmt::format(",{}_seconds", name_of(static_cast<StepPart>(part)));
  }
  table += '\n';
  for (const StudyPoint& point : study.points) {
    for (std::size_t repeat = 0; repeat < point.step_seconds.size(); ++repeat) {
      table +=
          fmt::format("{},{},{},{},{},{},{},{},{:.9g},{:.9g}", point.grid.ranks, point.grid.nodes, point.batch_per_rank,
                      point.setup.threads, point.setup.bucket_mib, text_cell(point.setup.precision, TableFormat::csv),
                      name_of(point.setup.exchange), repeat + 1, point.step_seconds[repeat],
                      static_cast<double>(point.global_batch()) / point.step_seconds[repeat]);
      for (const std::vector<double>& seconds : point.parts) {
        table += seconds.empty() ? "," : fmt::format(",{:.9g}", seconds[repeat]);
      }
      table += '\n';
    }
  }
  return table;
}

bool begins_as_study(std::string_view start) {
  return start.starts_with(fmt::format("{{\n \"about\": \"{}", any_version));
}
bool begins_as_study_csv(std::string_view start) { return start.starts_with(csv_start); }

}  // namespace lockstep
