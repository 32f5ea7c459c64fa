#include "scaling/study_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "made_up_study.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::study_file_test {

using testing::HasSubstr;

// What parse_study() says to it; empty: nothing is wrong.
std::string validation_error(const std::string& text) {
  try {
    parse_study(text, "made_up.json");
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::bad_data);
    return error.what();
  }
}

// To a study of which one thing was changed.
std::string objection_after(const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json json = nlohmann::json::parse(study_text(made_up_study({})));
  change(json);
  return validation_error(json.dump());
}

TEST(StudyFile, what_is_written_is_read_again) {
  Study study = made_up_study({.lateness = 0.1, .noise = 0.01});
  study.points[1].buckets[0].skew = 1e-3;
  add_varied(study, {.exchange = {.servers = 2}}, 1);
  study.accuracy_epochs = 3;
  study.accuracies = {{128, {0.5, 0.75}, ""}, {256, {}, "its training diverged"}};
  const std::string text = study_text(study);
  EXPECT_EQ(study_text(parse_study(text, "made_up.json")), text);
  EXPECT_TRUE(begins_as_study(text.substr(0, 128)));
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "study.json", text);
  EXPECT_EQ(read_study(folder.path() / "study.json").points.size(), study.points.size());
}

TEST(StudyFile, an_older_version_is_refused_and_may_be_written_over) {
  expect_message(validation_error(R"({"about": "scaling study of Lockstep, version 1"})"), {"made_up.json", "about"});
  EXPECT_TRUE(begins_as_study("{\n \"about\": \"scaling study of Lockstep, version 1\""));
}

TEST(StudyFile, one_without_exchanges_is_of_all_reduce) {
  nlohmann::json json = nlohmann::json::parse(study_text(made_up_study({})));
  for (nlohmann::json& point : json["points"]) {
    for (const char* const name : {"local_steps", "servers", "powersgd_rank"}) point["setup"].erase(name);
  }
  EXPECT_EQ(parse_study(json.dump(), "made_up.json").points[1].setup, StudySetup());
}

TEST(StudyFile, names_of_unknown_origin_are_no_trouble) {
  Study study = made_up_study({});
  study.hosts[0] = "\xff\x1b[2J\"";
  EXPECT_EQ(validation_error(study_text(study)), "");
}

TEST(StudyFile, parts_may_be_unknown) {
  Study study = made_up_study({});
  for (StudyPoint& point : study.points) point.parts = {};
  EXPECT_FALSE(parse_study(study_text(study), "").points[0].has_parts());
}

TEST(StudyFile, other_files_are_refused) {
  expect_message(validation_error("ranks,nodes"), {"made_up.json"});
  expect_message(validation_error("[]"), {"made_up.json"});
  expect_message(validation_error(std::string(100'000, '[')), {"made_up.json", "JSON"});
  expect_message(validation_error(R"({"about": "a summary"})"),
                 {"made_up.json", "'about'", "'scaling study of Lockstep, version 2'"});
}

TEST(StudyFile, each_field_is_checked) {
  using Json = nlohmann::json;
  const auto in_point = [](const std::function<void(Json&)>& change) {
    return objection_after([&](Json& json) { change(json["points"][1]); });
  };
  expect_message(objection_after([](Json& json) { json.erase("model"); }), {"'made_up.json'", "'model'"});
  expect_message(objection_after([](Json& json) { json["points"] = Json::array(); }), {"'points'", "1", "1000"});
  expect_message(objection_after([](Json& json) { json["weak_batch"] = 0; }), {"'weak_batch'"});
  expect_message(objection_after([](Json& json) { json["hosts"] = {1}; }), {"'hosts'"});
  expect_message(objection_after([](Json& json) { json["model"] = std::string(5000, 'm'); }), {"'model'"});
  expect_message(in_point([](Json& point) { point["ranks"] = 18446744073709551615ULL; }),
                 {"'points[1].ranks'", "1", "1048576"});
  expect_message(in_point([](Json& point) { point["nodes"] = point["ranks"].get<int>() + 1; }),
                 {"'points[1].nodes'", "1"});
  expect_message(in_point([](Json& point) { point["setup"]["servers"] = point["ranks"]; }),
                 {"'points[1].setup.servers'"});
  expect_message(in_point([](Json& point) { point["setup"]["powersgd_rank"] = 65; }),
                 {"'points[1].setup.powersgd_rank'", "64"});
  expect_message(in_point([](Json& point) { point["setup"]["threads"] = -1; }),
                 {"'points[1].setup.threads'", "0", "4096"});
  expect_message(in_point([](Json& point) { point["setup"]["bucket_mib"] = 1025; }),
                 {"'points[1].setup.bucket_mib'", "0", "1024"});
  expect_message(objection_after([](Json& json) {
                   json["accuracies"] = {{{"global_batch", 128}, {"by_seed", {1.5}}, {"missing", ""}}};
                 }),
                 {"'accuracies[0].by_seed'", "0", "1"});
  expect_message(objection_after([](Json& json) { json["setup"]["precision"] = "<b>"; }),
                 {"'setup.precision'", "fp32, bf16, fp16"});
  expect_message(in_point([](Json& point) { point["step_seconds"][0] = 0; }), {"'points[1].step_seconds'"});
  expect_message(in_point([](Json& point) { point["part_seconds"]["forward"][0] = -1; }),
                 {"'points[1].part_seconds.forward'", "1e-09", "1e+06"});
  expect_message(in_point([](Json& point) { point["part_seconds"]["other"].push_back(1); }),
                 {"'points[1].part_seconds.other'", "'step_seconds'"});
  expect_message(objection_after([](Json& json) { json["points"][2]["sums"][0]["seconds"][0] = 0; }),
                 {"'points[2].sums[0].seconds'"});
  expect_message(objection_after([](Json& json) { json["points"][2]["buckets"][0]["ready"] = 2; }),
                 {"'points[2].buckets[0].ready'", "0", "1"});
  expect_message(objection_after([](Json& json) {
                   Json& ranks = json["points"][2]["by_rank"];
                   for (int i = 0; i < 8; ++i) ranks.push_back(ranks[0]);
                 }),
                 {"'points[2].by_rank'", "0", "2"});
}

TEST(StudyFile, the_table_has_a_line_for_each_repeat) {
  const Study study = made_up_study({.repeats = 2});
  const std::string table = study_csv(study);
  EXPECT_TRUE(begins_as_study_csv(table));
  EXPECT_EQ(std::ranges::count(table, '\n'), 1 + 2 * static_cast<std::ptrdiff_t>(study.points.size()));
  EXPECT_THAT(table, HasSubstr(",forward_seconds,backward_seconds,exposed_seconds,"));
  EXPECT_THAT(table, HasSubstr("\n1,1,32,1,4,fp32,all-reduce,1,0.0341,938.416422,0.0001,0.0128,0.0192,0,0,0.002,0\n"));
}

}  // namespace lockstep::study_file_test
