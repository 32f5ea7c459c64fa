#include "train/pretrained/initial_weights.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/io/file.hpp"
#include "device/cpu/cpu_device.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "files/import/safetensors.hpp"
#include "nn/initialize.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"
#include "train/pretrained/assign_pretrained.hpp"

namespace lockstep::initial_weights_test {

class InitialWeightsTest : public testing::Test {
 protected:
  using Values = std::map<std::string, std::vector<float>>;

  std::unique_ptr<Model> make(std::int64_t classes, std::uint64_t seed) {
    auto model = std::make_unique<Model>(*device_, ModelOptions{"lenet", {32, 32, 3}, classes});
    model->store.allocate(device_->make_persistent(model->store.gradient_buffer_count(), DType::f32));
    initialize(model->store, seed);
    return model;
  }
  static Values values(const Model& model) {
    Values values;
    for (ParameterStore::Entry& entry : model.store.entries()) values[entry.name] = std::move(entry.values);
    return values;
  }
  void write(const Model& model, std::int64_t classes) const {
    write_model_file(path_, {"lenet",
                             std::vector<std::string>(static_cast<std::size_t>(classes), "c"),
                             {32, 32, 3},
                             {0, 0, 0},
                             {1, 1, 1},
                             model.store.entries()});
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "model.h5";
  std::unique_ptr<Device> device_ = cpu::open_cpu_device({.threads = 1});
};

TEST_F(InitialWeightsTest, all_weights_come_from_the_file) {
  const auto written = make(10, 1);
  write(*written, 10);
  const auto model = make(10, 2);
  ASSERT_NE(values(*model), values(*written));
  load_initial_weights(path_, Head::as_written, *model);
  EXPECT_EQ(values(*model), values(*written));
}

TEST_F(InitialWeightsTest, a_new_head_keeps_its_own_weights_and_may_have_other_classes) {
  const auto written = make(10, 1);
  write(*written, 10);
  const auto model = make(3, 2);
  const Values before = values(*model);
  load_initial_weights(path_, Head::fresh, *model);
  const std::string head = model->store.parameters().back().name;
  const std::string layer = head.substr(0, head.rfind('.'));
  int kept = 0;
  for (const auto& [name, after] : values(*model)) {
    const bool is_head = name.starts_with(layer);
    kept += is_head ? 1 : 0;
    EXPECT_EQ(after, is_head ? before.at(name) : values(*written).at(name)) << name;
  }
  EXPECT_EQ(kept, 2);  // weight and bias
}

TEST_F(InitialWeightsTest, other_classes_without_a_new_head_are_refused) {
  write(*make(10, 1), 10);
  const auto model = make(3, 2);
  expect_error(Failure::usage, {"--new-head", path_.string()},
               [&] { load_initial_weights(path_, Head::as_written, *model); });
}

using Entries = std::vector<ParameterStore::Entry>;

Entries behind(const std::string& prefix, Entries entries) {
  for (ParameterStore::Entry& entry : entries) entry.name.insert(0, prefix);
  return entries;
}

// Weights of DistributedDataParallel, torch.compile and others were refused, name by name.
TEST_F(InitialWeightsTest, names_of_wrappers_in_front_are_left_out) {
  const auto written = make(10, 1);
  for (const char* prefix : {"module.", "_orig_mod.", "model.", "state_dict.", "module._orig_mod.", "net.model."}) {
    const auto model = make(10, 2);
    const auto note = assign_pretrained("w.safetensors", behind(prefix, written->store.entries()), *model);
    expect_message(note.value_or("none"), {"'w.safetensors'", "'" + std::string(prefix) + "'"});
    EXPECT_EQ(values(*model), values(*written));
  }
  EXPECT_EQ(assign_pretrained("w.safetensors", written->store.entries(), *make(10, 2)), std::nullopt);
}

TEST_F(InitialWeightsTest, a_new_head_needs_no_head_behind_the_prefix) {
  const auto written = make(10, 1);
  write_file_atomically(path_, safetensors_image(behind("module.", written->store.entries()), {}));
  const auto model = make(3, 2);
  load_initial_weights(path_, Head::fresh, *model);
  EXPECT_EQ(values(*model).at("conv1.weight"), values(*written).at("conv1.weight"));
}

TEST_F(InitialWeightsTest, names_that_fit_stay_and_two_prefixes_are_refused) {
  const auto model = make(10, 1);
  const Entries plain = model->store.entries();
  const auto with = [](Entries entries, const Entries& more) {
    entries.insert(entries.end(), more.begin(), more.end());
    return entries;
  };
  const auto refusal = [&](const Entries& entries) {
    return message_of(Failure::usage, [&] { assign_pretrained("w.h5", entries, *model); });
  };
  expect_message(refusal(with(behind("model.", plain), behind("ema.", plain))), {"w.h5", "ema.", "model."});
  expect_message(refusal(with(plain, behind("ema.", plain))), {"--model", "w.h5", "lenet"});
}

// Ended with 65, as a damaged file does, and named no model.
TEST_F(InitialWeightsTest, the_model_that_weights_are_of_is_named) {
  const auto refusal = [&](const ModelOptions& of, const ModelOptions& to) {
    Model given(*device_, of);
    given.store.allocate(device_->make_persistent(given.store.gradient_buffer_count(), DType::f32));
    Model model(*device_, to);
    model.store.allocate(device_->make_persistent(model.store.gradient_buffer_count(), DType::f32));
    return message_of(Failure::usage,
                      [&] { assign_pretrained("w.h5", behind("module.", given.store.entries()), model); });
  };
  expect_message(refusal({"resnet20", {32, 32, 3}, 100}, {"lenet", {32, 32, 3}, 10}),
                 {"'w.h5'", "'lenet'", "94", "--model resnet20"});
  expect_message(refusal({"resnet18", {224, 224, 3}, 1000, 16}, {"resnet34", {32, 32, 3}, 10, 16}),
                 {"'w.h5'", "'resnet34'", "--model resnet18"});
  expect_message(refusal({"resnet20", {32, 32, 3}, 100}, {"resnet20", {32, 32, 3}, 10}), {"--new-head", "w.h5"});
  // "They fit --model lenet", which had been given.
  expect_message(refusal({"lenet", {32, 32, 3}, 10}, {"lenet", {28, 28, 3}, 10}), {"--model lenet", "32 x 32"});
}

// The misfit was told as a tensor's shape, [64, 3, 7, 7] there and [64, 3, 3, 3] here.
TEST_F(InitialWeightsTest, weights_for_images_of_another_size_are_told_as_such) {
  const auto resnet = [&](std::int64_t side) {
    auto model = std::make_unique<Model>(*device_, ModelOptions{"resnet18", {side, side, 3}, 10, 16});
    model->store.allocate(device_->make_persistent(model->store.gradient_buffer_count(), DType::f32));
    return model;
  };
  const auto large = resnet(224);
  const auto small = resnet(32);
  const auto answer = [&](const Model& given, Model& to) {
    return message_of(Failure::usage, [&] { assign_pretrained("w.safetensors", given.store.entries(), to); });
  };
  expect_message(answer(*large, *small), {"--image-size", "w.safetensors"});
  expect_message(answer(*small, *large), {"--image-size", "w.safetensors"});
  EXPECT_EQ(answer(*large, *large), "no error");
}

}  // namespace lockstep::initial_weights_test
