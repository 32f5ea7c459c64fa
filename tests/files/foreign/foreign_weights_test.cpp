// Weights that h5py and the package safetensors wrote (tests/golden/make_foreign.py), and what is refused of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "files/foreign/given_weights.hpp"
#include "files/foreign/safetensors.hpp"
#include "support/temporary_folder.hpp"
#include "support/words_of.hpp"

namespace lockstep {
namespace {

using Entries = std::vector<ParameterStore::Entry>;

std::filesystem::path golden(const std::string& name) { return std::filesystem::path(LOCKSTEP_FOREIGN_DIR) / name; }

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

class ForeignFileTest : public testing::TestWithParam<const char*> {};

TEST_P(ForeignFileTest, gives_the_tensors_and_nothing_else) {
  const ModelFile read = read_given_weights(golden(GetParam()));
  expect_equal(read.entries, small_state());
  EXPECT_EQ(read.model, "");
  EXPECT_TRUE(read.classes.empty());
}

INSTANTIATE_TEST_SUITE_P(, ForeignFileTest,
                         testing::Values("state_dict.h5", "state_dict_attributes.h5", "state_dict_half.h5",
                                         "state_dict_double.h5", "tensors.safetensors", "tensors_half.safetensors",
                                         "tensors_double.safetensors", "tensors_bfloat16.safetensors"),
                         [](const auto& one) {
                           std::string name = one.param;
                           for (char& letter : name) letter = letter == '.' ? '_' : letter;
                           return name;
                         });

class ForeignWeightsTest : public testing::Test {
 protected:
  std::string refusal(const std::string& name) const {
    const std::filesystem::path path = golden(name);
    return without_frame(words_of(Failure::bad_data, [&] { read_given_weights(path); }), path);
  }
  // Of a file with these bytes.
  std::string refusal_of(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    return without_frame(words_of(Failure::bad_data, [&] { read_given_weights(path_); }), path_);
  }
  std::string refusal_of_header(const std::string& header, const std::string& values) const {
    return refusal_of(with_length(header) + values);
  }
  static std::string with_length(const std::string& header) {
    std::string length;
    for (unsigned i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> 8 * i);
    return length + header;
  }
  static std::string without_frame(const std::string& words, const std::filesystem::path& path) {
    const std::string start = "weights '" + path.string() + "' cannot be read: ";
    const std::string end = ". Copy or convert them again: see apps/files.md, \"Weights from elsewhere\".";
    if (!words.starts_with(start) || !words.ends_with(end)) return words;
    return words.substr(start.size(), words.size() - start.size() - end.size());
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "given";
};

TEST_F(ForeignWeightsTest, hundreds_of_tensors_lie_in_a_tree_of_several_levels) {
  const Entries entries = read_given_weights(golden("state_dict_many.h5")).entries;
  ASSERT_EQ(entries.size(), 600U);
  std::map<std::string, std::vector<float>> values;
  for (const ParameterStore::Entry& entry : entries) values[entry.name] = entry.values;
  for (int i = 0; i < 600; ++i) {
    const auto number = static_cast<float>(i);
    EXPECT_EQ(values.at("layer" + std::to_string(i) + ".weight"), (std::vector<float>{number, -number}));
  }
}

TEST_F(ForeignWeightsTest, other_forms_of_hdf5_are_named) {
  EXPECT_EQ(refusal("state_dict_latest.h5"),
            "it is in a newer form of HDF5 than h5py writes by default (libver='latest', or track_order)");
  EXPECT_EQ(refusal("state_dict_chunked.h5"), "'fc.weight' is stored in chunks or compressed");
}

TEST_F(ForeignWeightsTest, a_cut_hdf5_file_is_told_by_its_length) {
  const std::string whole = read_file(golden("state_dict.h5"), 1 << 20);
  EXPECT_EQ(refusal_of(whole.substr(0, whole.size() - 8)), "it has 5080 bytes, and says itself that it had 5088");
}

TEST_F(ForeignWeightsTest, a_soft_link_is_not_followed) {
  std::string whole = read_file(golden("state_dict.h5"), 1 << 20);
  const std::size_t members = whole.find("SNOD") + 8;
  whole[members + 16] = 2;  // the first member's kind
  EXPECT_EQ(refusal_of(whole), "'bn1.num_batches_tracked' is a link to elsewhere");
}

TEST_F(ForeignWeightsTest, whole_numbers_are_no_weights) {
  std::string whole = read_file(golden("state_dict.h5"), 1 << 20);
  const std::string name = "bn1.num_batches_tracked";
  whole.replace(whole.find(name), name.size(), "bn1.num_batches_seen\0\0\0", name.size());
  EXPECT_EQ(refusal_of(whole),
            "'bn1.num_batches_seen' is not of 16-, 32- or 64-bit floating point numbers, little-endian");
}

TEST_F(ForeignWeightsTest, what_a_safetensors_header_gets_wrong_is_named) {
  const std::string four(4, '\0');
  const auto tensor = [](const char* fields) { return std::string("{\"a\":{") + fields + "}}"; };
  EXPECT_EQ(refusal_of_header("{not JSON", ""), "its header is no JSON");
  EXPECT_EQ(refusal_of_header("{}", ""), "it holds no tensors");
  EXPECT_EQ(refusal_of_header("{\"a\":1}", ""), "'a' is no JSON object");
  EXPECT_EQ(refusal_of_header("{\"a\":{\"b\":{\"c\":{\"d\":1}}}}", ""), "its header is nested too deeply");
  EXPECT_EQ(refusal_of_header(R"({"a":{},"a":{}})", ""), "its header names 'a' twice");
  EXPECT_EQ(refusal_of_header(tensor(R"("data_offsets":[0,4])"), four), "'a' has no 'dtype'");
  EXPECT_EQ(refusal_of_header(tensor(R"("dtype":"I8","shape":[4],"data_offsets":[0,4])"), four),
            "'a' is of type I8, not F32, F16, BF16 or F64");
  EXPECT_EQ(refusal_of_header(tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), four),
            "'a' has no 'shape' of whole numbers");
  EXPECT_EQ(refusal_of_header(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4.5])"), four),
            "'a' has no 'data_offsets' of whole numbers");
  EXPECT_EQ(refusal_of_header(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), four),
            "'a' has no beginning and end");
  EXPECT_EQ(refusal_of_header(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), four),
            "'a' has 4 bytes where its shape needs 8");
  EXPECT_EQ(refusal_of_header(tensor(R"("dtype":"F32","shape":[0],"data_offsets":[0,4])"), four),
            "'a' has a dimension without values");
  EXPECT_EQ(refusal_of_header(tensor(R"("dtype":"F32","shape":[1,1,1,1,1],"data_offsets":[0,4])"), four),
            "'a' has 5 dimensions, more than 4");
  EXPECT_EQ(refusal_of_header(tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])"), four),
            "'a' is larger than the file");
  EXPECT_EQ(refusal_of_header(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), four + "x"),
            "its tensors have 4 bytes, and 5 follow its header");
  const std::string b = R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":)";
  const std::string a = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_EQ(refusal_of_header(a + b + "[0,4]}}", four), "its tensors overlap, or leave a gap");
  EXPECT_EQ(refusal_of_header(a + b + "[8,12]}}", four + four + four), "its tensors overlap, or leave a gap");
}

TEST_F(ForeignWeightsTest, a_safetensors_file_that_was_not_copied_to_its_end_says_so) {
  const std::string whole = safetensors_image(small_state(), {{"format", "pt"}});
  std::ofstream(path_, std::ios::binary) << whole.substr(0, whole.size() - 3);
  EXPECT_NE(words_of(Failure::bad_data, [&] { read_given_weights(path_); })
                .find(fmt::format("it ends after {} bytes, and its header tells of {} (it was not copied to its end)",
                                  whole.size() - 3, whole.size())),
            std::string::npos);
}

TEST_F(ForeignWeightsTest, a_file_of_another_kind_is_refused) {
  for (const std::string& bytes : {std::string(), std::string("cats and dogs"), with_length("{}").substr(0, 9)}) {
    std::ofstream(path_, std::ios::binary) << bytes;
    EXPECT_EQ(words_of(Failure::usage, [&] { read_given_weights(path_); }),
              "'" + path_.string() +
                  "' holds no weights (neither a model file, a checkpoint, safetensors nor HDF5). Is it the right "
                  "file?");
  }
}

std::string advice_on_pickles(const std::filesystem::path& path) {
  const std::string words = words_of(Failure::usage, [&] { read_given_weights(path); });
  const std::string start =
      "'" + path.string() +
      "' is a pickle of PyTorch (opening one can run code, so Lockstep never does). Convert it in Python: ";
  return words.starts_with(start) ? words.substr(start.size()) : words;
}

// The first bytes of a ZIP archive.
std::string zip_with(const std::string& first_name) {
  std::string start = "PK\3\4" + std::string(26, '\0');
  start[26] = static_cast<char>(first_name.size());
  return start + first_name + std::string(50, '\0');
}

// NumPy's and any other ZIP archive was called a pickle of PyTorch.
TEST_F(ForeignWeightsTest, other_forms_are_named) {
  const std::vector<std::pair<std::string, std::string>> forms = {
      {zip_with("x_train.npy"), "a NumPy archive (.npz)"},
      {zip_with("metadata.json"), "a Keras archive (.keras)"},
      {zip_with("notes.txt"), "a ZIP archive"},
      {"PK\3\4", "a ZIP archive"},
      {"\x93NUMPY\1", "a NumPy array (.npy)"}};
  for (const auto& [bytes, form] : forms) {
    std::ofstream(path_, std::ios::binary) << bytes;
    EXPECT_EQ(
        words_of(Failure::usage, [&] { read_given_weights(path_); }),
        "'" + path_.string() + "' is " + form +
            ", which Lockstep does not read. Convert weights to safetensors or HDF5: see apps/files.md, \"Weights "
            "from elsewhere\".");
  }
}

TEST_F(ForeignWeightsTest, hdf5_without_weights_is_said_to_be_another_programs) {
  const auto words = [](const std::string& name) {
    return words_of(Failure::usage, [&] { read_given_weights(golden(name)); });
  };
  EXPECT_EQ(words("images_and_labels.h5"),
            "'" + golden("images_and_labels.h5").string() +
                "' is an HDF5 file of another program, not one of Lockstep's. Its root holds 'classes', 'images', "
                "'labels' and 1 more, and no data set of floating-point numbers, as weights are. Name a file that "
                "make_shards or train_cifar wrote, or weights with a data set of the root for each tensor.");
  EXPECT_EQ(words("keras.h5"),
            "'" + golden("keras.h5").string() +
                "' is a Keras file, not one of Lockstep's (Keras names and lays out its tensors in another way). "
                "Convert its weights to torchvision's names and layouts: see apps/files.md, \"Weights from "
                "elsewhere\".");
  EXPECT_NE(words("state_dict_group.h5").find("Its root holds 'model', and no data set"), std::string::npos);
}

// Of torch.optim.swa_utils.AveragedModel, a whole number.
TEST_F(ForeignWeightsTest, counters_are_passed_over) {
  const std::string header = R"({"n_averaged":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                             R"("module.w":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";
  std::ofstream(path_, std::ios::binary) << with_length(header) << std::string(12, '\0');
  expect_equal(read_given_weights(path_).entries, {{"module.w", {1}, {0}}});
}

TEST_F(ForeignWeightsTest, a_pickle_is_not_opened) {
  for (const std::string& start : {zip_with("archive/data.pkl"), std::string("\x80\2}q")}) {
    std::ofstream(path_, std::ios::binary) << start;
    EXPECT_TRUE(advice_on_pickles(path_).starts_with("import h5py, torch; ")) << advice_on_pickles(path_);
  }
}

// The lines of code on the page that follow these words.
std::string lines_after(const std::string& words) {
  const std::string page = read_file(LOCKSTEP_FIELDS_PAGE, 1 << 20);
  std::istringstream rest(page.substr(page.find(words)));
  std::string lines;
  for (std::string line; std::getline(rest, line);) {
    if (line.starts_with("    ")) lines += line.substr(4) + '\n';
  }
  return lines;
}

TEST_F(ForeignWeightsTest, what_the_page_and_the_refusal_say_converts_a_pickle) {
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
    expect_equal(read_given_weights(folder_.path() / (std::to_string(i) + ".h5")).entries,
                 {{"0.bias", {2}, {0, 0}},
                  {"0.running_mean", {2}, {0, 0}},
                  {"0.running_var", {2}, {1, 1}},
                  {"0.weight", {2}, {0.5F, -3}}});
  }
}

TEST_F(ForeignWeightsTest, our_own_files_are_known_with_a_hash_and_without) {
  const ModelFile written{"lenet", {"cat"}, {8, 8, 1}, {0.5F}, {0.25F}, small_state()};
  write_model_file(path_, written);
  EXPECT_EQ(read_given_weights(path_).model, "lenet");
  const std::string whole = read_file(path_, 1 << 20);
  std::ofstream(path_, std::ios::binary) << whole.substr(0, whole.size() - hash_line({}).size());
  EXPECT_EQ(read_given_weights(path_).model, "lenet");
}

TEST_F(ForeignWeightsTest, a_safetensors_file_of_ours_gives_back_what_was_written) {
  std::ofstream(path_, std::ios::binary) << safetensors_image(small_state(), {{"model", "lenet"}, {"format", "pt"}});
  expect_equal(read_given_weights(path_).entries, small_state());
}

}  // namespace
}  // namespace lockstep
