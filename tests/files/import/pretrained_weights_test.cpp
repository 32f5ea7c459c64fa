// Weights that h5py and the package safetensors wrote (tests/golden/make_foreign.py), and what is refused of them.
#include "files/import/pretrained_weights.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "files/import/safetensors.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::pretrained_weights_test {

using Entries = std::vector<ParameterStore::Entry>;

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(LOCKSTEP_GOLDEN_DIR "/foreign") / name;
}

// small_state() of make_foreign.py, without the count of batches. Every type holds these values exactly.
Entries small_state() {
  std::vector<float> conv;
  for (int i = 0; i < 24; ++i) conv.push_back(static_cast<float>(i) / 8 - 1);
  return {{"bn1.running_mean", {2}, {0.25F, 3}},
          {"bn1.weight", {2}, {1, -0.5F}},
          {"conv1.weight", {2, 3, 2, 2}, conv},
          {"fc.bias", {1}, {0}},
          {"fc.weight", {1, 3}, {0.5F, 0.125F, -2}}};
}

void expect_equal(const Entries& read, const Entries& expected) {
  ASSERT_EQ(read.size(), expected.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].name, expected[i].name);
    EXPECT_EQ(read[i].dims, expected[i].dims) << read[i].name;
    EXPECT_EQ(read[i].values, expected[i].values) << read[i].name;
  }
}

std::string bytes_of(const std::string& name) { return read_file(golden(name), 1 << 20); }

// A safetensors file whose header holds these entries, and then `size` bytes of values.
std::string safetensors(const std::string& entries, std::size_t size) {
  const std::string header = "{" + entries + "}";
  std::string length;
  for (unsigned i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> 8 * i);
  return length + header + std::string(size, '\0');
}

// An entry of such a header.
std::string tensor(const char* name, const char* type, const char* shape, const char* offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{}]}})", name, type, shape, offsets);
}

// The first bytes of a ZIP archive.
std::string zip_with(const std::string& first_name) {
  std::string start = "PK\3\4" + std::string(26, '\0');
  start[26] = static_cast<char>(first_name.size());
  return start + first_name + std::string(50, '\0');
}

struct Refusal {
  const char* name;
  std::string bytes;
  Failure failure;
  std::string subject;  // that the message names, beside the file
};

class PretrainedWeightsTest : public testing::Test {
 protected:
  ModelFile read(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    return read_pretrained_weights(path_);
  }
  void expect_refusals(const std::vector<Refusal>& rows) const {
    for (const Refusal& row : rows) {
      SCOPED_TRACE(row.name);
      expect_error(row.failure, {path_.string(), row.subject}, [&] { read(row.bytes); });
    }
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "given";
};

TEST_F(PretrainedWeightsTest, a_file_gives_its_tensors_and_nothing_else) {
  for (const char* name : {"state_dict.h5", "state_dict_attributes.h5", "state_dict_half.h5", "state_dict_double.h5",
                           "tensors.safetensors", "tensors_half.safetensors", "tensors_double.safetensors",
                           "tensors_bfloat16.safetensors"}) {
    SCOPED_TRACE(name);
    const ModelFile file = read_pretrained_weights(golden(name));
    expect_equal(file.entries, small_state());
    EXPECT_EQ(file.model, "");
    EXPECT_TRUE(file.classes.empty());
  }
}

TEST_F(PretrainedWeightsTest, hundreds_of_tensors_lie_in_a_tree_of_several_levels) {
  const Entries entries = read_pretrained_weights(golden("state_dict_many.h5")).entries;
  ASSERT_EQ(entries.size(), 600U);
  std::map<std::string, std::vector<float>> values;
  for (const ParameterStore::Entry& entry : entries) values[entry.name] = entry.values;
  for (int i = 0; i < 600; ++i) {
    const auto number = static_cast<float>(i);
    EXPECT_EQ(values.at("layer" + std::to_string(i) + ".weight"), (std::vector<float>{number, -number}));
  }
}

TEST_F(PretrainedWeightsTest, hdf5_that_is_damaged_or_holds_no_weights_is_refused) {
  const std::string whole = bytes_of("state_dict.h5");
  std::string soft_link = whole;
  soft_link[whole.find("SNOD") + 24] = 2;  // the first member's kind
  std::string whole_numbers = whole;
  const std::string counter = "bn1.num_batches_tracked";
  whole_numbers.replace(whole.find(counter), counter.size(), "bn1.num_batches_seen\0\0\0", counter.size());
  using enum Failure;
  expect_refusals({{"newer form", bytes_of("state_dict_latest.h5"), bad_data, "latest"},
                   {"chunks", bytes_of("state_dict_chunked.h5"), bad_data, "fc.weight"},
                   {"cut", whole.substr(0, whole.size() - 8), bad_data, "5080"},
                   {"soft link", soft_link, bad_data, "bn1.num_batches_tracked"},
                   {"whole numbers", whole_numbers, bad_data, "bn1.num_batches_seen"},
                   {"images and labels", bytes_of("images_and_labels.h5"), usage, ""},
                   {"weights in a group", bytes_of("state_dict_group.h5"), usage, ""},
                   {"Keras", bytes_of("keras.h5"), usage, ""}});
}

TEST_F(PretrainedWeightsTest, a_safetensors_file_that_is_damaged_or_holds_no_weights_is_refused) {
  const std::string whole = safetensors_image(small_state(), {{"format", "pt"}});
  const std::string cut = whole.substr(0, whole.size() - 3);
  using enum Failure;
  const std::string a = tensor("a", "F32", "1", "0,4");
  expect_refusals({
      {"no JSON", safetensors("not JSON", 0), bad_data, ""},
      {"no tensors", safetensors("", 0), bad_data, ""},
      {"a number", safetensors(R"("a":1)", 0), bad_data, "a"},
      {"nested", safetensors(R"("a":{"b":{"c":{"d":1}}})", 0), bad_data, ""},
      {"name twice", safetensors(R"("a":{},"a":{})", 0), bad_data, "a"},
      {"no type", safetensors(R"("a":{"data_offsets":[0,4]})", 4), bad_data, "'dtype'"},
      {"type", safetensors(tensor("a", "I8", "4", "0,4"), 4), bad_data, "a"},
      {"negative size", safetensors(tensor("a", "F32", "-1", "0,4"), 4), bad_data, "a"},
      {"fraction", safetensors(tensor("a", "F32", "1", "0,4.5"), 4), bad_data, "a"},
      {"end first", safetensors(tensor("a", "F32", "1", "4,0"), 4), bad_data, "a"},
      {"few bytes", safetensors(tensor("a", "F32", "2", "0,4"), 4), bad_data, "a"},
      {"size 0", safetensors(tensor("a", "F32", "0", "0,4"), 4), bad_data, "a"},
      {"dimensions", safetensors(tensor("a", "F32", "1,1,1,1,1", "0,4"), 4), bad_data, "a"},
      {"overflow", safetensors(tensor("a", "F32", "4294967296,4294967296", "0,4"), 4), bad_data, "a"},
      {"bytes left", safetensors(a, 5), bad_data, ""},
      {"overlap", safetensors(a + "," + tensor("b", "F32", "1", "0,4"), 4), bad_data, ""},
      {"gap", safetensors(a + "," + tensor("b", "F32", "1", "8,12"), 12), bad_data, ""},
      {"cut", cut, bad_data, std::to_string(cut.size())},
  });
}

TEST_F(PretrainedWeightsTest, a_file_of_another_kind_is_refused) {
  const std::string no_weights = "safetensors";
  using enum Failure;
  expect_refusals({
      {"empty", "", usage, no_weights},
      {"text", "cats and dogs", usage, no_weights},
      {"header cut", safetensors("", 0).substr(0, 9), usage, no_weights},
      // NumPy's and any other ZIP archive was called a PyTorch pickle.
      {"npz", zip_with("x_train.npy"), usage, "NumPy archive"},
      {"keras", zip_with("metadata.json"), usage, "Keras archive"},
      {"zip", zip_with("notes.txt"), usage, "ZIP archive"},
      {"zip cut", "PK\3\4", usage, "ZIP archive"},
      {"npy", "\x93NUMPY\1", usage, "NumPy array"},
  });
}

// Of torch.optim.swa_utils.AveragedModel, a whole number.
TEST_F(PretrainedWeightsTest, counters_are_passed_over) {
  const std::string file =
      safetensors(tensor("n_averaged", "I64", "", "0,8") + "," + tensor("module.w", "F32", "1", "8,12"), 12);
  expect_equal(read(file).entries, {{"module.w", {1}, {0}}});
}

std::string advice_on_pickles(const std::filesystem::path& path) {
  const std::string words = message_of(Failure::usage, [&] { read_pretrained_weights(path); });
  return words.substr(std::min(words.find("import h5py"), words.size()));
}

TEST_F(PretrainedWeightsTest, a_pickle_is_not_opened) {
  for (const std::string& start : {zip_with("archive/data.pkl"), std::string("\x80\2}q")}) {
    std::ofstream(path_, std::ios::binary) << start;
    EXPECT_TRUE(advice_on_pickles(path_).starts_with("import h5py, torch; ")) << advice_on_pickles(path_);
    expect_error(Failure::usage, {path_.string(), "h5py.File"}, [&] { read_pretrained_weights(path_); });
  }
}

// The lines of code on the page that follow these words.
std::string lines_after(const std::string& words) {
  const std::string page = read_file(LOCKSTEP_DOCUMENTS "/files.md", 1 << 20);
  std::istringstream rest(page.substr(page.find(words)));
  std::string lines;
  for (std::string line; std::getline(rest, line);) {
    if (line.starts_with("    ")) lines += line.substr(4) + '\n';
  }
  return lines;
}

TEST_F(PretrainedWeightsTest, what_the_page_and_the_refusal_say_converts_a_pickle) {
  if (std::system("/usr/bin/python3 -c 'import torch, h5py' 2> /dev/null") != 0) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch or no h5py";
  }
  std::ofstream(folder_.path() / "weights.pth", std::ios::binary) << zip_with("archive/data.pkl");
  const std::vector<std::string> conversions = {advice_on_pickles(folder_.path() / "weights.pth"),
                                                lines_after("Six lines of Python convert it:")};
  // One script, for starting PyTorch takes seconds.
  std::ofstream script(folder_.path() / "convert.py");
  script << "import os, torch\n"
            "net = torch.nn.Sequential(torch.nn.BatchNorm1d(2))\n"
            "net[0].weight.data = torch.tensor([0.5, -3])\n"
            "plain = net.state_dict()\n"
            "wrapped = {'state_dict': plain, 'epoch': 3}\n"
            "in_model = {'model': plain, 'optimizer': {}}\n";
  std::size_t files = 0;
  for (const std::string& conversion : conversions) {
    for (const char* content : {"plain", "wrapped", "in_model"}) {
      script << "torch.save(" << content << ", 'weights.pth')\n"
             << conversion << "\nos.rename('weights.h5', '" << files++ << ".h5')\n";
    }
  }
  script.close();
  ASSERT_EQ(std::system(("cd '" + folder_.path().string() + "' && /usr/bin/python3 convert.py").c_str()), 0);
  for (std::size_t i = 0; i < files; ++i) {
    expect_equal(read_pretrained_weights(folder_.path() / (std::to_string(i) + ".h5")).entries,
                 {{"0.bias", {2}, {0, 0}},
                  {"0.running_mean", {2}, {0, 0}},
                  {"0.running_var", {2}, {1, 1}},
                  {"0.weight", {2}, {0.5F, -3}}});
  }
}

TEST_F(PretrainedWeightsTest, our_own_files_are_known_with_a_hash_and_without) {
  write_model_file(path_, {"lenet", {"cat"}, {8, 8, 1}, {0.5F}, {0.25F}, small_state()});
  EXPECT_EQ(read_pretrained_weights(path_).model, "lenet");
  const std::string whole = read_file(path_, 1 << 20);
  EXPECT_EQ(read(whole.substr(0, whole.size() - hash_line({}).size())).model, "lenet");
}

TEST_F(PretrainedWeightsTest, a_safetensors_file_of_ours_gives_back_what_was_written) {
  expect_equal(read(safetensors_image(small_state(), {{"model", "lenet"}, {"format", "pt"}})).entries, small_state());
}

}  // namespace lockstep::pretrained_weights_test
