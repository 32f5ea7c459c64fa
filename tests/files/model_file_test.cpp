#include "files/model_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/io/file.hpp"
#include "base/io/hdf5_memory.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "network/build.hpp"
#include "network/network_text.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/temporary_folder.hpp"
#include "support/virtual_dataset.hpp"

namespace lockstep::model_file_test {

ModelFile small_model() {
  return {"lenet",
          {"cat", "dog", "Ärmel"},
          {32, 32, 3},
          {0.49F, 0.48F, 0.45F},
          {0.2F, 0.25F, 0.26F},
          {{"conv1.weight", {2, 1, 3, 1}, {1, 2, 3, 4, 5, 6}}, {"fc.bias", {3}, {-1, 0.5F, 1e-30F}}},
          36,
          640};
}

// The description of a network, about 45 bytes for each node.
std::string long_network(int nodes) {
  NetworkGraph graph({8, 8, 3});
  build::Value x = build::input(graph);
  for (int i = 0; i < nodes; ++i) x = build::conv(x, std::to_string(i), {.out = 3, .kernel = 1});
  build::flatten(x);
  return network_text(graph);
}

class ModelFileTest : public testing::Test {
 protected:
  std::string damage() const {
    return message_of(Failure::bad_data, [&] { read_weights(path_); });
  }

  // Opens the file as any HDF5 user might, to spoil it.
  Hid<H5Fclose> open() const {
    return Hid<H5Fclose>(check_h5(H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "open for spoiling"));
  }
  void replace_parameter(hid_t file, hid_t type, const std::vector<hsize_t>& dims) const {
    check_h5(H5Ldelete(file, "fc.bias", H5P_DEFAULT), "delete");
    const Hid<H5Sclose> space(
        check_h5(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), "describe"));
    const Hid<H5Dclose> dataset(
        check_h5(H5Dcreate2(file, "fc.bias", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "create"));
  }

  // Writes the text attribute anew, as other programs do.
  void replace_text(const char* name, const std::string& cell, H5T_cset_t characters, H5T_str_t padding) const {
    const Hid<H5Fclose> file = open();
    check_h5(H5Adelete(file, name), "delete");
    const Hid<H5Tclose> type(check_h5(H5Tcopy(H5T_C_S1), "make a type"));
    check_h5(H5Tset_size(type, cell.size()), "set the size");
    check_h5(H5Tset_cset(type, characters), "set the characters");
    check_h5(H5Tset_strpad(type, padding), "set the padding");
    const Hid<H5Sclose> space(check_h5(H5Screate(H5S_SCALAR), "describe"));
    const Hid<H5Aclose> attribute(check_h5(H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT), "create"));
    check_h5(H5Awrite(attribute, type, cell.data()), "write");
  }

  const TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
  const std::filesystem::path path_ = folder_ / "model.h5";
};

// The names in the first column of the table under `heading`.
std::set<std::string> fields_named_under(const std::string& heading, const std::filesystem::path& page) {
  std::istringstream text(read_file(page, 1 << 20));
  std::set<std::string> fields;
  bool is_there = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('#')) is_there = line == heading;
    if (!is_there || !line.starts_with("| `")) continue;
    std::istringstream cell(line.substr(2, line.find('|', 2) - 2));
    for (std::string before, name; std::getline(cell, before, '`') && std::getline(cell, name, '`');)
      fields.insert(name);
  }
  return fields;
}

TEST_F(ModelFileTest, its_attributes_are_those_that_the_page_names) {
  ModelFile model = small_model();
  model.sample_bits = 12;
  model.network = long_network(2000);
  model.classes.resize(8000, "n00000001");
  write_model_file(path_, model);
  const Hid<H5Fclose> file = open();
  std::set<std::string> attributes;
  const auto note = [](hid_t, const char* name, const H5A_info_t*, void* names) -> herr_t {
    static_cast<std::set<std::string>*>(names)->insert(name);
    return 0;
  };
  check_h5(H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, note, &attributes), "list");
  EXPECT_EQ(attributes, fields_named_under("## model.h5", LOCKSTEP_DOCUMENTS "/files.md"));
}

TEST_F(ModelFileTest, gives_back_what_was_written) {
  ModelFile written = small_model();
  written.sample_bits = 12;
  write_model_file(path_, written);
  const ModelFile read = read_weights(path_);
  EXPECT_EQ(read.sample_bits, 12);
  EXPECT_EQ(read.model, written.model);
  EXPECT_EQ(read.classes, written.classes);
  EXPECT_EQ(read.shape, written.shape);
  EXPECT_EQ(read.mean, written.mean);
  EXPECT_EQ(read.deviation, written.deviation);
  EXPECT_EQ(read.shorter_side, 36);
  EXPECT_EQ(read.step, 640);
  ASSERT_EQ(read.entries.size(), 2U);
  EXPECT_EQ(read.entries[0].name, "conv1.weight");
  EXPECT_EQ(read.entries[0].dims, written.entries[0].dims);
  EXPECT_EQ(read.entries[0].values, written.entries[0].values);
  EXPECT_EQ(read.entries[1].values, written.entries[1].values);
}

TEST_F(ModelFileTest, holds_the_names_of_a_thousand_classes) {
  ModelFile model = small_model();
  model.classes.clear();
  for (int c = 0; c < 1000; ++c) model.classes.push_back(std::string(60, 'x') + std::to_string(c));
  write_model_file(path_, model);
  EXPECT_EQ(read_weights(path_).classes, model.classes);
}

TEST_F(ModelFileTest, holds_the_names_of_as_many_classes_as_a_data_set_can_have) {
  ModelFile model = small_model();
  model.classes.clear();
  for (int c = 0; c < 100'000; ++c) model.classes.push_back(std::string(60, 'x') + std::to_string(c));
  write_model_file(path_, model);
  EXPECT_EQ(read_weights(path_).classes, model.classes);
}

TEST_F(ModelFileTest, more_texts_than_any_file_has_are_refused) {
  write_model_file(path_, small_model());
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - hash_line({}).size());
  {
    const Hid<H5Fclose> file = open();
    check_h5(H5Adelete(file, "classes"), "delete");
    hdf5_write_texts(file, "classes", std::vector<std::string>(tensor_file_limits::texts + 1));
  }
  expect_message(damage(), {"classes17"});
}

TEST_F(ModelFileTest, opens_in_pytorch_in_three_lines) {
  if (std::system("/usr/bin/python3 -c 'import torch, h5py' 2> /dev/null") != 0) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch or no h5py";
  }
  write_model_file(path_, small_model());
  std::ofstream(folder_ / "load.py")
      << "import h5py, torch\n"
      << "with h5py.File('" << path_.string() << "') as file:\n"
      << "    state = {name: torch.from_numpy(data[()]) for name, data in file.items()}\n"
      << "conv = torch.nn.Conv2d(1, 2, (3, 1), bias=False)\n"
      << "conv.load_state_dict({'weight': state['conv1.weight']})\n"
      << "assert conv.weight.flatten().tolist() == [1, 2, 3, 4, 5, 6]\n"
      << "assert state['fc.bias'].tolist()[:2] == [-1, 0.5]\n";
  EXPECT_EQ(std::system(("/usr/bin/python3 " + (folder_ / "load.py").string()).c_str()), 0);
}

TEST_F(ModelFileTest, a_missing_file_is_a_wrong_name) {
  const std::string message = message_of(Failure::usage, [&] { read_weights(path_); });
  EXPECT_NE(message.find(path_.string()), std::string::npos) << message;
  EXPECT_NE(message.find("No such file or directory"), std::string::npos) << message;
}

// HDF5's stack of errors was told, with a source file of ours: it converts no ASCII into UTF-8.
TEST_F(ModelFileTest, a_text_is_read_in_whichever_characters_and_padding_it_was_written) {
  for (const H5T_cset_t characters : {H5T_CSET_ASCII, H5T_CSET_UTF8}) {
    for (const auto& [padding, cell] : {std::pair(H5T_STR_NULLPAD, std::string("lenet\0\0", 7)),
                                        std::pair(H5T_STR_NULLTERM, std::string("lenet\0", 6)),
                                        std::pair(H5T_STR_SPACEPAD, std::string("lenet  "))}) {
      write_model_file(path_, small_model());
      replace_text("model", cell, characters, padding);
      EXPECT_EQ(read_weights(path_).model, "lenet") << characters << ' ' << padding;
    }
  }
}

TEST_F(ModelFileTest, a_text_of_variable_length_is_refused_in_our_words) {
  write_model_file(path_, small_model());
  {
    const Hid<H5Fclose> file = open();
    check_h5(H5Adelete(file, "model"), "delete");
    const Hid<H5Tclose> type(check_h5(H5Tcopy(H5T_C_S1), "make a type"));
    check_h5(H5Tset_size(type, H5T_VARIABLE), "set the size");
    const Hid<H5Sclose> space(check_h5(H5Screate(H5S_SCALAR), "describe"));
    const Hid<H5Aclose> attribute(check_h5(H5Acreate2(file, "model", type, space, H5P_DEFAULT, H5P_DEFAULT), "create"));
    const char* const text = "lenet";
    check_h5(H5Awrite(attribute, type, &text), "write");
  }
  expect_message(damage(), {"model"});
}

TEST_F(ModelFileTest, one_changed_weight_shows) {
  write_model_file(path_, small_model());
  {
    const Hid<H5Fclose> file = open();
    const Hid<H5Dclose> dataset(check_h5(H5Dopen2(file, "fc.bias", H5P_DEFAULT), "open"));
    const float values[] = {-1, 0.5F, 2e-30F};
    check_h5(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "write");
  }
  expect_message(damage(), {});
}

TEST_F(ModelFileTest, every_cut_is_found) {
  write_model_file(path_, small_model());
  const std::string whole = read_file(path_, 1 << 20);
  const std::size_t content_bytes = whole.size() - hash_line({}).size();  // the line itself may go
  for (std::size_t bytes = 0; bytes < content_bytes; bytes += 97) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, bytes);
    EXPECT_NE(damage().find(path_.string()), std::string::npos) << bytes;
  }
}

TEST_F(ModelFileTest, every_changed_byte_is_found_or_harmless) {
  const ModelFile written = small_model();
  write_model_file(path_, written);
  const std::string whole = read_file(path_, 1 << 20);
  for (std::size_t at = 0; at < whole.size(); at += 13) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    std::ofstream(path_, std::ios::binary) << changed;
    try {
      EXPECT_EQ(model_hash(read_weights(path_)), model_hash(written)) << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data) << at << ": " << error.what();
    }
  }
}

// HDF5 1.10 crashes in some damaged structures (memory that is not its own): none may reach it.
TEST_F(ModelFileTest, no_damage_makes_reading_crash_or_believe) {
  const ModelFile written = small_model();
  write_model_file(path_, written);
  const std::string whole = read_file(path_, 1 << 20);
  const std::size_t line_bytes = hash_line({}).size();
  const std::string content = whole.substr(0, whole.size() - line_bytes);
  const std::string line = whole.substr(content.size());
  for (std::uint64_t round = 0; round < mutation_rounds(2000); ++round) {
    std::string damaged = mutated(content, round) + line;
    try {
      EXPECT_EQ(model_hash(parse_model_file(path_, damaged)), model_hash(written)) << round;
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data) << round << ": " << error.what();
    }
  }
}

TEST_F(ModelFileTest, a_file_of_another_kind_is_refused) {
  std::ofstream(path_) << "PK not HDF5 at all";
  expect_message(damage(), {});
}

TEST_F(ModelFileTest, a_network_of_any_length_comes_back_in_a_format_of_its_own) {
  for (const int nodes : {1, 90, 1400, 1600, 10'000}) {
    ModelFile written = small_model();
    written.network = long_network(nodes);
    write_model_file(path_, written);
    const ModelFile read = read_weights(path_);
    EXPECT_EQ(read.network, written.network);
    EXPECT_EQ(format_of(read), 4);
    EXPECT_EQ(model_options(read).network, written.network);
    EXPECT_EQ(read.entries.size(), written.entries.size());
    EXPECT_NE(model_hash(read), model_hash(small_model()));
  }
}

TEST_F(ModelFileTest, a_network_that_is_none_is_neither_written_nor_read) {
  ModelFile model = small_model();
  model.network = "{}";
  expect_error(Failure::usage, {"network"}, [&] { write_model_file(path_, model); });
  model.network.clear();
  model.model = "../net.onnx";  // which no reader may open
  expect_error(Failure::usage, {"network"}, [&] { write_model_file(path_, model); });
}

TEST_F(ModelFileTest, a_newer_format_is_named) {
  write_model_file(path_, small_model());
  {
    const Hid<H5Fclose> file = open();
    const Hid<H5Aclose> attribute(check_h5(H5Aopen(file, "format", H5P_DEFAULT), "open"));
    const std::int32_t newer = 5;
    check_h5(H5Awrite(attribute, H5T_NATIVE_INT32, &newer), "write");
  }
  expect_error(Failure::bad_data, {path_.string()}, [&] { read_weights(path_); });
}

TEST_F(ModelFileTest, a_file_of_the_format_before_does_not_say_how_tests_resize_pictures) {
  ModelFile written = small_model();
  written.shorter_side.reset();
  written.step.reset();
  write_model_file(path_, written);
  {
    const Hid<H5Fclose> file = open();
    const Hid<H5Aclose> attribute(check_h5(H5Aopen(file, "format", H5P_DEFAULT), "open"));
    std::int32_t format = 0;
    check_h5(H5Aread(attribute, H5T_NATIVE_INT32, &format), "read");
    EXPECT_EQ(format, 1);
  }
  EXPECT_EQ(read_weights(path_).shorter_side, std::nullopt);
  EXPECT_EQ(model_hash(read_weights(path_)), model_hash(written));
  // The hash that the version before wrote of it.
  EXPECT_EQ(model_hash(written), "7c0f5f8e893cd3c8c08ac3fac150db72");
}

TEST_F(ModelFileTest, a_missing_attribute_is_named) {
  write_model_file(path_, small_model());
  check_h5(H5Adelete(open(), "mean"), "delete");
  expect_message(damage(), {"mean"});
}

TEST_F(ModelFileTest, a_parameter_of_another_type_is_refused) {
  write_model_file(path_, small_model());
  replace_parameter(open(), H5T_IEEE_F64LE, {3});
  expect_message(damage(), {"fc.bias", "32"});
}

TEST_F(ModelFileTest, a_parameter_that_claims_more_than_the_file_is_refused_before_memory_is_taken) {
  write_model_file(path_, small_model());
  replace_parameter(open(), H5T_IEEE_F32LE, {hsize_t{1} << 30, hsize_t{1} << 30});
  expect_message(damage(), {"fc.bias"});
}

TEST_F(ModelFileTest, a_link_to_another_file_is_not_followed) {
  write_model_file(path_, small_model());
  {
    const Hid<H5Fclose> file = open();
    check_h5(H5Ldelete(file, "fc.bias", H5P_DEFAULT), "delete");
    check_h5(H5Lcreate_external("/etc/passwd", "/", file, "fc.bias", H5P_DEFAULT, H5P_DEFAULT), "link");
  }
  expect_message(damage(), {"fc.bias"});
}

// HDF5 opened any file that a virtual dataset names, to learn the shape.
TEST_F(ModelFileTest, a_shape_in_another_file_is_not_looked_up) {
  write_model_file(path_, small_model());
  {
    const Hid<H5Fclose> file = open();
    check_h5(H5Ldelete(file, "fc.bias", H5P_DEFAULT), "delete");
    create_virtual_dataset(file, "fc.bias", H5T_IEEE_F32LE);
  }
  expect_message(damage(), {"fc.bias", "contiguously"});
}

TEST_F(ModelFileTest, a_normalisation_that_would_divide_by_zero_is_refused) {
  write_model_file(path_, small_model());
  {
    const Hid<H5Fclose> file = open();
    const Hid<H5Aclose> attribute(check_h5(H5Aopen(file, "deviation", H5P_DEFAULT), "open"));
    const float values[] = {0.2F, 0, 0.26F};
    check_h5(H5Awrite(attribute, H5T_NATIVE_FLOAT, values), "write");
  }
  expect_message(damage(), {"mean", "deviation"});
}

// A name of a class with a zero byte was written, and the file was then called damaged.
TEST_F(ModelFileTest, what_reading_would_refuse_is_not_written) {
  const std::string text_limit(tensor_file_limits::text_bytes, 'x');
  const std::string name_limit(tensor_file_limits::name_bytes, 'x');
  const std::vector<std::pair<std::function<void(ModelFile&)>, std::string>> faults = {
      {[](ModelFile& model) { model.classes.clear(); }, "'classes'"},
      {[](ModelFile& model) { model.classes.resize(tensor_file_limits::texts + 1); }, "1048577"},
      {[&](ModelFile& model) { model.classes[1] = text_limit + 'x'; }, "4097"},
      {[](ModelFile& model) { model.classes[1] = std::string("c\0t", 3); }, "'classes'"},
      {[](ModelFile& model) { model.entries.clear(); }, "0 tensors"},
      {[&](ModelFile& model) { model.entries[0].name = name_limit + 'x'; }, "4096"},
      {[](ModelFile& model) { model.entries[0].name.clear(); }, "0 bytes"},
      {[](ModelFile& model) {
         model.entries[0].dims = {1, 1, 1, 1, 6};
       },
       "'conv1.weight'"},
      {[](ModelFile& model) {
         model.entries[0].dims = {6, 0};
       },
       "'conv1.weight'"},
      {[](ModelFile& model) { model.shape.width = 65537; }, "'sample_shape'"},
      {[](ModelFile& model) { model.deviation[1] = 0; }, "'mean'"},
      {[](ModelFile& model) { model.deviation[1] = 1e-30F; }, "'mean'"},
      {[](ModelFile& model) { model.mean[1] = 1e30F; }, "'mean'"},
      {[](ModelFile& model) { model.mean[1] = std::nanf(""); }, "'mean'"},
      {[](ModelFile& model) { model.shorter_side = 65537; }, "'shorter_side'"},
      {[](ModelFile& model) { model.sample_bits = 17; }, "'sample_bits'"},
      {[](ModelFile& model) { model.shorter_side = -1; }, "'shorter_side'"},
      {[](ModelFile& model) { model.mean.pop_back(); }, "'mean'"},
  };
  for (const auto& [spoil, subject] : faults) {
    ModelFile model = small_model();
    spoil(model);
    SCOPED_TRACE(subject);
    expect_error(Failure::usage, {subject}, [&] { write_model_file(path_, model); });
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
  }
  ModelFile model = small_model();
  model.classes[1] = text_limit;
  model.entries[1].name = name_limit;  // the last by name
  model.shape.width = 65536;
  write_model_file(path_, model);
  EXPECT_EQ(model_hash(read_weights(path_)), model_hash(model));
}

TEST_F(ModelFileTest, writing_where_nobody_may_leaves_nothing) {
  const std::filesystem::path nowhere = folder_ / "missing" / "model.h5";
  const std::string message = message_of(Failure::usage, [&] { write_model_file(nowhere, small_model()); });
  EXPECT_NE(message.find(nowhere.string()), std::string::npos) << message;
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace lockstep::model_file_test
