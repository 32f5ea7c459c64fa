// A file of events: what is in it, in which order, and what becomes of it where there is no room.
#include "train/tensorboard/event_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/io/file.hpp"
#include "base/log.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/no_room.hpp"
#include "support/temporary_folder.hpp"
#include "train/observers/reported_training.hpp"

namespace lockstep::event_log_test {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

constexpr std::size_t time_bytes = 9;  // at the start of each event

std::string without_time(const std::string& event) { return event.substr(time_bytes); }

// Events of a file, without their times. Every sum is checked.
std::vector<std::string> events_in(const fs::path& file) {
  const std::string bytes = read_file(file, 1 << 20);
  std::vector<std::string> events;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = static_cast<unsigned char>(bytes[at]) + 256U * static_cast<unsigned char>(bytes[at + 1]);
    const std::string event = bytes.substr(at + 12, length);
    EXPECT_EQ(bytes.substr(at, length + 16), tf_record(event));
    events.push_back(without_time(event));
    at += length + 16;
  }
  return events;
}

std::string of_scalars(std::int64_t step, const std::vector<Scalar>& scalars) {
  return without_time(scalars_event({0, step}, scalars));
}

Json training(std::int64_t step, double loss) { return {{"kind", "training"}, {"step", step}, {"loss", loss}}; }

class EventLogTest : public testing::Test {
 protected:
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "events")) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }

  TemporaryFolder folder_;
  EventLog log_{folder_.path() / "events", {{"recipe", "    lr"}}};
};

TEST(EventScalarsTest, have_names_by_kind_and_leave_out_what_is_not_drawn) {
  const auto names_of = [](const Json& metrics) {
    std::vector<std::string> names;
    for (const Scalar& scalar : scalars_of(metrics)) names.push_back(scalar.tag);
    return names;
  };
  EXPECT_THAT(names_of({{"kind", "training"},
                        {"step", 1},
                        {"loss", 2.5},
                        {"accuracy", 0.5},
                        {"learning_rate", 0.1},
                        {"samples_per_second", 100},
                        {"samples", 7},
                        {"gradient_norm", nullptr}}),
              ElementsAre("loss/training", "accuracy/training", "learning_rate", "samples_per_second"));
  EXPECT_THAT(names_of({{"kind", "test"}, {"step", 1}, {"loss", 2.5}, {"top5", 0.5}, {"ema_accuracy", 0.25}}),
              ElementsAre("loss/test", "top5/test", "accuracy/test_of_mean_weights"));
  EXPECT_THAT(names_of({{"kind", "skipped"}, {"step", 1}, {"loss_scale", 1024}}), ElementsAre("loss_scale"));
  EXPECT_TRUE(names_of({{"kind", "slowest rank"}, {"step", 1}, {"rank", 1}}).empty());
}

TEST_F(EventLogTest, begins_with_version_and_restart_and_is_whole_after_each_event) {
  log_.begin(0);
  log_.append(training(5, 2.5));
  ASSERT_EQ(files().size(), 1U);
  EXPECT_THAT(files()[0].filename().string(), testing::StartsWith("events.out.tfevents."));
  EXPECT_THAT(events_in(files()[0]), ElementsAre(without_time(version_event(0)), without_time(restart_event({0, 0})),
                                                 without_time(text_event({0, 0}, "recipe", "    lr")),
                                                 of_scalars(5, {{"loss/training", 2.5F}})));
}

// Steps after the checkpoint are trained again: readers drop what they have of them.
TEST_F(EventLogTest, a_training_that_goes_on_restarts_at_its_next_step) {
  log_.begin(12);
  EXPECT_EQ(events_in(files()[0]).at(1), without_time(restart_event({0, 13})));
}

TEST_F(EventLogTest, what_finds_no_room_is_told_once_and_written_later) {
  log_.begin(0);
  log_.append({{"kind", "test"}, {"step", 1}, {"loss", 1}});
  for (int i = 0; i < 300; ++i) log_.append(training(0, 1));  // what is captured goes into a file too
  const std::size_t before = events_in(files()[0]).size();
  testing::internal::CaptureStderr();
  {
    const NoRoomBeyond limit(fs::file_size(files()[0]) + 10);
    log_.append(training(1, 1));
    log_.append(training(2, 2));
    EXPECT_EQ(events_in(files()[0]).size(), before) << "no half of an event";
    EXPECT_FALSE(log_.flush());
  }
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warning, HasSubstr("'" + files()[0].string() + "'"));
  EXPECT_EQ(std::ranges::count(warning, '\n'), 1) << warning;
  testing::internal::CaptureStdout();
  log_.append(training(3, 3));
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("'" + files()[0].string() + "'"));
  const std::vector<std::string> events = events_in(files()[0]);
  ASSERT_EQ(events.size(), before + 3);
  EXPECT_EQ(events[before], of_scalars(1, {{"loss/training", 1.0F}}));
  EXPECT_EQ(events[before + 2], of_scalars(3, {{"loss/training", 3.0F}}));
}

TEST_F(EventLogTest, a_folder_that_was_removed_is_made_again) {
  log_.begin(0);
  fs::remove_all(folder_.path() / "events");
  log_.append(training(1, 1));
  ASSERT_EQ(files().size(), 1U);
  EXPECT_THAT(events_in(files()[0]),
              ElementsAre(without_time(version_event(0)), of_scalars(1, {{"loss/training", 1.0F}})));
}

TEST_F(EventLogTest, a_folder_that_cannot_be_is_refused) {
  std::ofstream(folder_.path() / "file") << "text";
  EventLog refused(folder_.path() / "file" / "events", {});
  expect_error(Failure::usage, {"--tensorboard"}, [&] { refused.begin(0); });
}

// Of two trainings with one folder TensorBoard showed the second alone.
TEST_F(EventLogTest, a_folder_with_events_of_another_training_is_refused) {
  const auto log_of = [&](const char* owner) { return EventLog(folder_.path() / "events", {}, owner); };
  const auto refusal = [&](const char* owner) {
    return message_of(Failure::usage, [&] { log_of(owner).require_own_folder(); });
  };
  EXPECT_EQ(refusal("one"), "no error");
  log_of("one").begin(0);
  EXPECT_EQ(refusal("one"), "no error") << "the same training, begun anew";
  const std::string message = refusal("other");
  expect_message(message, {"--tensorboard", (folder_.path() / "events").string()});
  EXPECT_EQ(refusal(""), message) << "one without a folder of its own";
}

TEST_F(EventLogTest, two_logs_in_one_second_have_files_of_their_own) {
  EventLog other(folder_.path() / "events", {});
  log_.begin(0);
  other.begin(0);
  EXPECT_EQ(files().size(), 2U);
}

// TensorBoard read the file of an attempt whose clock was behind before the earlier ones, and dropped its events.
TEST_F(EventLogTest, the_file_of_a_later_attempt_is_the_last_one) {
  const fs::path earlier = folder_.path() / "events" / "events.out.tfevents.4000000000.n1.1.0.owner";
  fs::create_directories(earlier.parent_path());
  write_file_atomically(earlier, "");
  log_.begin(0);
  ASSERT_EQ(files().size(), 2U);
  EXPECT_EQ(files()[0], earlier);
}

TEST_F(EventLogTest, it_shows_what_a_training_reports) {
  auto log = std::make_unique<EventLog>(folder_.path() / "events", std::vector<EventText>{});
  log->begin(0);
  ReportedTraining training(nullptr, {2, 10}, 5, nullptr, LaterOutput::repeated, std::move(log));
  testing::internal::CaptureStdout();
  for (std::int64_t step = 0; step < 5; ++step) training.step(step, {6, 0, 4});
  testing::internal::GetCapturedStdout();
  const std::vector<std::string> events = events_in(files().at(0));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_THAT(events[2], HasSubstr("loss/training\x15" + std::string("\0\0\xc0\x3f", 4)));      // 1.5
  EXPECT_THAT(events[2], HasSubstr("learning_rate\x15" + std::string("\xcd\xcc\xcc\x3d", 4)));  // 0.1
}

}  // namespace lockstep::event_log_test
