#include "files/checkpoint/checkpoint.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "base/io/file.hpp"
#include "base/io/hdf5_memory.hpp"
#include "files/import/pretrained_weights.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/samples/small_checkpoint.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::checkpoint_test {

void expect_same(const std::vector<ParameterStore::Entry>& read, const std::vector<ParameterStore::Entry>& written) {
  ASSERT_EQ(read.size(), written.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].name, written[i].name);
    EXPECT_EQ(read[i].dims, written[i].dims);
    ASSERT_EQ(read[i].values.size(), written[i].values.size());
    // Bytes, because -0 equals 0.
    EXPECT_EQ(std::memcmp(read[i].values.data(), written[i].values.data(), read[i].values.size() * sizeof(float)), 0);
  }
}

class CheckpointTest : public testing::Test {
 protected:
  void write(const Checkpoint& checkpoint) const {
    write_file_atomically(path_, std::span<const std::byte>(checkpoint_image(checkpoint)));
  }
  std::string damage() const {
    return message_of(Failure::bad_data, [&] { read_checkpoint(path_); });
  }
  Hid<H5Fclose> open() const {
    return Hid<H5Fclose>(check_h5(H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "open for spoiling"));
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "step.h5";
};

TEST_F(CheckpointTest, a_mean_of_weights_is_kept_beside_them_and_is_what_others_use) {
  Checkpoint written = small_checkpoint();
  written.ema = written.model.entries;
  for (float& value : written.ema[0].values) value += 0.25F;
  written.state.report.mean_test = TestFigures{0.5, 0.625};
  write(written);
  const Checkpoint read = read_checkpoint(path_);
  expect_same(read.model.entries, written.model.entries);
  expect_same(read.ema, written.ema);
  ASSERT_EQ(read.optimizer.size(), 1U);
  EXPECT_EQ(read.state.report.mean_test->accuracy, 0.625);
  EXPECT_EQ(read.state.report.mean_test->loss, 0.5);
  expect_same(read_weights(path_).entries, written.ema);
  expect_same(read_pretrained_weights(path_).entries, written.ema);
  written.ema.clear();
  write(written);
  expect_same(read_weights(path_).entries, written.model.entries);
}

TEST_F(CheckpointTest, the_users_note_and_tags_are_attributes_that_are_hashed) {
  Checkpoint written = small_checkpoint();
  written.note = "narrow, from scratch";
  written.tags = {"set=a", "try=1"};
  write(written);
  EXPECT_EQ(read_checkpoint(path_).note, "narrow, from scratch");
  EXPECT_EQ(read_checkpoint(path_).tags, (std::vector<std::string>{"set=a", "try=1"}));
  check_h5(H5Adelete(open(), "tags"), "delete");
  expect_message(damage(), {});
}

TEST_F(CheckpointTest, a_changed_mean_is_found) {
  Checkpoint written = small_checkpoint();
  written.ema = written.model.entries;
  write(written);
  {
    const Hid<H5Fclose> file = open();
    const Hid<H5Dclose> data(check_h5(H5Dopen2(file, "/mean_weights/fc.bias", H5P_DEFAULT), "open"));
    const std::vector<float> other(3, 9.0F);
    check_h5(H5Dwrite(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, other.data()), "write");
  }
  EXPECT_NE(damage(), "no error");
}

TEST_F(CheckpointTest, gives_back_what_was_written) {
  const Checkpoint written = small_checkpoint();
  write(written);
  const Checkpoint read = read_checkpoint(path_);
  EXPECT_EQ(model_hash(read.model), model_hash(written.model));
  expect_same(read.model.entries, written.model.entries);
  ASSERT_EQ(read.optimizer.size(), 1U);
  expect_same(read.optimizer.at("velocity"), written.optimizer.at("velocity"));
  EXPECT_EQ(training_state_text(read.state), training_state_text(written.state));
}

TEST_F(CheckpointTest, the_same_training_gives_the_same_bytes) {
  const std::vector<std::byte> image = checkpoint_image(small_checkpoint());
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5's dates count seconds
  EXPECT_EQ(checkpoint_image(small_checkpoint()), image);
}

TEST_F(CheckpointTest, holds_a_state_longer_than_an_object_header) {
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.state.kernel_plan = std::string(300000, 'x');
  write(checkpoint);
  EXPECT_EQ(read_checkpoint(path_).state.kernel_plan, checkpoint.state.kernel_plan);
}

TEST_F(CheckpointTest, its_weights_are_read_as_a_model_files_are) {
  write(small_checkpoint());
  EXPECT_EQ(model_hash(read_weights(path_)), model_hash(small_checkpoint().model));
  write_model_file(path_, small_checkpoint().model);
  EXPECT_EQ(model_hash(read_weights(path_)), model_hash(small_checkpoint().model));
}

TEST_F(CheckpointTest, a_model_file_is_no_checkpoint) {
  write_model_file(path_, small_checkpoint().model);
  expect_message(damage(), {"checkpoint_format"});
}

TEST_F(CheckpointTest, one_changed_value_shows_wherever_it_is) {
  for (const char* tensor : {"weights/fc.bias", "velocity/fc.bias"}) {
    write(small_checkpoint());
    {
      const Hid<H5Fclose> file = open();
      const Hid<H5Dclose> dataset(check_h5(H5Dopen2(file, tensor, H5P_DEFAULT), "open"));
      const float values[] = {-1, 0.5F, 2e-30F};
      check_h5(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "write");
    }
    SCOPED_TRACE(tensor);
    expect_message(damage(), {path_.string(), "hash"});
  }
}

TEST_F(CheckpointTest, weights_and_velocity_are_not_mistaken_for_each_other) {
  write(small_checkpoint());
  {
    const Hid<H5Fclose> file = open();
    check_h5(H5Lmove(file, "weights", H5L_SAME_LOC, "other", H5P_DEFAULT, H5P_DEFAULT), "move");
    check_h5(H5Lmove(file, "velocity", H5L_SAME_LOC, "weights", H5P_DEFAULT, H5P_DEFAULT), "move");
    check_h5(H5Lmove(file, "other", H5L_SAME_LOC, "velocity", H5P_DEFAULT, H5P_DEFAULT), "move");
  }
  expect_message(damage(), {});
}

TEST_F(CheckpointTest, every_cut_is_found) {
  write(small_checkpoint());
  const std::string whole = read_file(path_, 1 << 20);
  const std::size_t content_bytes = whole.size() - hash_line({}).size();  // the line itself may go
  for (std::size_t bytes = 0; bytes < content_bytes; bytes += 197) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, bytes);
    EXPECT_NE(damage().find(path_.string()), std::string::npos) << bytes;
  }
}

TEST_F(CheckpointTest, every_changed_byte_is_found_or_harmless) {
  const Checkpoint written = small_checkpoint();
  write(written);
  const std::string whole = read_file(path_, 1 << 20);
  for (std::size_t at = 0; at < whole.size(); at += 13) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    try {
      const Checkpoint read = parse_checkpoint(path_, changed);
      EXPECT_EQ(checkpoint_image(read), checkpoint_image(written)) << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data) << at << ": " << error.what();
    }
  }
}

// HDF5 1.10 crashes in some damaged structures (memory that is not its own): none may reach it.
TEST_F(CheckpointTest, no_damage_makes_reading_crash_or_believe) {
  const Checkpoint written = small_checkpoint();
  write(written);
  const std::string whole = read_file(path_, 1 << 20);
  const std::size_t line_bytes = hash_line({}).size();
  const std::string content = whole.substr(0, whole.size() - line_bytes);
  const std::string line = whole.substr(content.size());
  for (std::uint64_t round = 0; round < mutation_rounds(2000); ++round) {
    std::string damaged = mutated(content, round) + line;
    try {
      EXPECT_EQ(checkpoint_image(parse_checkpoint(path_, damaged)), checkpoint_image(written)) << round;
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data) << round << ": " << error.what();
    }
  }
}

// A field was added to the state, and earlier files were called damaged.
TEST_F(CheckpointTest, another_format_is_named_as_older_or_newer_before_anything_is_missed_in_it) {
  const auto written_with = [&](std::int32_t format) {
    write(small_checkpoint());
    const Hid<H5Fclose> file = open();
    const Hid<H5Aclose> attribute(check_h5(H5Aopen(file, "checkpoint_format", H5P_DEFAULT), "open"));
    check_h5(H5Awrite(attribute, H5T_NATIVE_INT32, &format), "write");
    check_h5(H5Ldelete(file, "state", H5P_DEFAULT), "delete");
    check_h5(H5Adelete(file, "mean"), "delete");
  };
  const auto message = [&] { return message_of(Failure::bad_data, [&] { read_checkpoint(path_); }); };
  written_with(1);
  expect_message(message(), {path_.string(), "older", "format 1", "format 5"});
  written_with(6);
  expect_message(message(), {path_.string(), "newer", "format 6", "format 5"});
  expect_error(Failure::bad_data, {path_.string(), "newer", "format 6", "format 5"}, [&] { read_weights(path_); });
  written_with(-1);
  expect_message(damage(), {"checkpoint_format"});
}

// A training that an earlier version began goes on.
TEST_F(CheckpointTest, one_of_the_format_before_does_not_say_how_tests_resize_pictures) {
  Checkpoint checkpoint = small_checkpoint();
  write(checkpoint);
  EXPECT_EQ(read_checkpoint(path_).model.shorter_side, std::nullopt);
  EXPECT_EQ(format_of(read_checkpoint(path_)), 2);
  checkpoint.model.shorter_side = 256;
  write(checkpoint);
  EXPECT_EQ(read_checkpoint(path_).model.shorter_side, 256);
  EXPECT_EQ(format_of(read_checkpoint(path_)), 3);
}

TEST_F(CheckpointTest, one_of_a_network_of_its_own_has_a_format_of_its_own) {
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.model.network = R"({"input":[8,8,3],"nodes":[["Conv","c",[0],[3,3,1,1,0,0]],["Flatten","f",[1],[]]]})";
  write(checkpoint);
  const Checkpoint read = read_checkpoint(path_);
  EXPECT_EQ(format_of(read), 5);
  EXPECT_EQ(read.model.network, checkpoint.model.network);
}

// Versions before it would train on and never stop.
TEST_F(CheckpointTest, one_with_the_state_of_early_stopping_has_a_format_of_its_own) {
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.state.early_stop = EarlyStopState{"test-loss", 0.25, 10, 3};
  write(checkpoint);
  const Checkpoint read = read_checkpoint(path_);
  EXPECT_EQ(format_of(read), 4);
  EXPECT_EQ(training_state_text(read.state), training_state_text(checkpoint.state));
  EXPECT_EQ(training_state_text(small_checkpoint().state).find("early_stop"), std::string::npos);
  for (const char* damaged : {R"({"metric":1,"best":0,"best_step":0,"tests":0})", R"({"metric":"test-loss"})",
                              R"({"metric":"test-loss","best":null,"best_step":0,"tests":0})",
                              R"({"metric":"test-loss","best":0,"best_step":0,"tests":-1})", "3"}) {
    nlohmann::json state = nlohmann::json::parse(training_state_text(small_checkpoint().state));
    state["early_stop"] = nlohmann::json::parse(damaged);
    EXPECT_THROW(parse_training_state(state.dump()), std::runtime_error) << damaged;
  }
}

TEST_F(CheckpointTest, a_group_that_is_missing_or_leads_elsewhere_is_named) {
  write(small_checkpoint());
  check_h5(H5Ldelete(open(), "velocity", H5P_DEFAULT), "delete");
  expect_message(damage(), {});
  check_h5(H5Lcreate_soft("/weights", open(), "velocity", H5P_DEFAULT, H5P_DEFAULT), "link");
  expect_message(damage(), {"velocity"});
  check_h5(H5Ldelete(open(), "velocity", H5P_DEFAULT), "delete");
  check_h5(H5Lmove(open(), "weights", H5L_SAME_LOC, "velocity", H5P_DEFAULT, H5P_DEFAULT), "move");
  expect_message(damage(), {"weights"});
}

// An optimizer's array of this name would stand for the model in the hash.
TEST_F(CheckpointTest, a_group_with_the_name_of_something_else_is_refused) {
  for (const std::string name : {"model", "format"}) {
    write(small_checkpoint());
    check_h5(H5Lmove(open(), "velocity", H5L_SAME_LOC, name.c_str(), H5P_DEFAULT, H5P_DEFAULT), "move");
    expect_message(damage(), {name});
  }
}

// Files of this format hold the velocity of SGD, and are read as they were.
TEST_F(CheckpointTest, a_checkpoint_of_sgd_has_the_hash_that_it_always_had) {
  const std::vector<std::byte> image = checkpoint_image(small_checkpoint());
  std::string bytes(reinterpret_cast<const char*>(image.data()), image.size());
  const TensorFileReader file({"checkpoint", ""}, "step.h5", bytes);
  EXPECT_EQ(file.texts("hash")[0], "3f9302a78a918e22c41d6cf77e8a8163");
}

TEST_F(CheckpointTest, a_state_of_the_right_hash_that_makes_no_sense_is_refused) {
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.state.progress.tested_step = 13;
  write(checkpoint);
  expect_message(damage(), {"tested_step"});
}

// The best model is written while the checkpoint writer works. HDF5 itself is not thread-safe.
TEST_F(CheckpointTest, threads_write_and_read_at_the_same_time) {
  const std::vector<std::byte> checkpoint = checkpoint_image(small_checkpoint());
  const auto work = [&](const std::string& name) {
    for (int round = 0; round < 100; ++round) {
      const std::filesystem::path path = folder_.path() / name;
      write_file_atomically(path, std::span<const std::byte>(checkpoint_image(small_checkpoint())));
      EXPECT_EQ(checkpoint_image(read_checkpoint(path)), checkpoint);
    }
  };
  std::thread other([&] { work("other.h5"); });
  work("own.h5");
  other.join();
}

}  // namespace lockstep::checkpoint_test
