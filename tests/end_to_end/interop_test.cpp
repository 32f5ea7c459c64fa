// Weights that come from other programs, and go to them; and logits.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "base/io/hdf5.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "files/import/safetensors.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::interop_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class InteropTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult made =
        run_program({built_program("make_shards"), "synthetic", "--samples", "400", "--output", data()});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    const ProgramResult trained = train(folder_->path() / "run");
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    write_file_atomically(foreign(), safetensors_image(read_weights(model()).entries, {}));
  }
  static void TearDownTestSuite() { delete folder_; }
  static fs::path data() { return folder_->path() / "data"; }
  static fs::path model() { return folder_->path() / "run" / "model.h5"; }
  static fs::path foreign() { return folder_->path() / "weights.safetensors"; }  // the same weights

  static ProgramResult train(const fs::path& output, const std::vector<std::string>& more = {},
                             const std::string& model = "lenet") {
    std::vector<std::string> words = {built_program("train_cifar"),
                                      "--data",
                                      data(),
                                      "--output",
                                      output,
                                      "--model",
                                      model,
                                      "--epochs",
                                      "1",
                                      "--threads",
                                      "1",
                                      "--checkpoints",
                                      output / "checkpoints"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  static ProgramResult evaluate(const fs::path& file, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {
        built_program("evaluate"), "--model-file", file, "--data", data(), "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  // Its one sentence.
  static std::string refusal(const ProgramResult& result, int code) {
    EXPECT_EQ(result.exit_code, code) << result.errors;
    return result.errors;
  }

  static TemporaryFolder* folder_;
};

TemporaryFolder* InteropTest::folder_ = nullptr;

TEST_F(InteropTest, another_programs_weights_are_evaluated_as_the_model_that_they_are_said_to_be_of) {
  const ProgramResult result = evaluate(foreign(), {"--model", "lenet"});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("top-1"));
  EXPECT_EQ(result.output, evaluate(model()).output);
}

TEST_F(InteropTest, another_programs_weights_need_the_name_of_a_model_that_they_fit) {
  EXPECT_THAT(refusal(evaluate(foreign()), 2), AllOf(HasSubstr("'" + foreign().string() + "'"), HasSubstr("--model")));
  EXPECT_THAT(
      refusal(evaluate(foreign(), {"--model", "convnet"}), 2),
      AllOf(HasSubstr("'convnet'"), HasSubstr("'fc.bias', 'fc.weight', 'layer1.0.bias'"), HasSubstr("11"),
            HasSubstr("'conv1.bias', 'conv1.weight', 'conv2.bias'"), HasSubstr("7"), HasSubstr("--model lenet")));
  EXPECT_THAT(refusal(evaluate(model(), {"--model", "resnet20"}), 2),
              AllOf(HasSubstr("'" + model().string() + "'"), HasSubstr("'lenet'"), HasSubstr("'resnet20'"),
                    HasSubstr("--model")));
}

TEST_F(InteropTest, a_model_that_blurs_says_so_wherever_it_goes) {
  const fs::path run = folder_->path() / "blurred";
  const ProgramResult trained = train(run, {"--blur-pool"}, "resnet20");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.output, HasSubstr("model: resnet20-blur, 269722 parameters"));
  const std::string answer = evaluate(run / "model.h5").output;
  const fs::path weights = run / "weights.safetensors";
  ASSERT_EQ(run_program({built_program("export_model"), run / "model.h5", "--safetensors", weights}).exit_code, 0);
  EXPECT_THAT(read_file(weights, 1 << 24), HasSubstr(R"("model":"resnet20-blur")"));
  EXPECT_EQ(evaluate(weights, {"--model", "resnet20-blur"}).output, answer);
  EXPECT_NE(evaluate(weights, {"--model", "resnet20"}).output, answer);
  EXPECT_THAT(refusal(evaluate(run / "model.h5", {"--model", "resnet20"}), 2),
              AllOf(HasSubstr("'resnet20-blur'"), HasSubstr("'resnet20'"), HasSubstr("--model")));
  EXPECT_THAT(refusal(train(run, {}, "resnet20"), 2), HasSubstr("--blur-pool true"));
}

TEST_F(InteropTest, a_model_without_strided_convolutions_is_not_blurred) {
  EXPECT_THAT(refusal(train(folder_->path() / "never", {"--blur-pool"}), 2),
              AllOf(HasSubstr("'lenet'"), HasSubstr("--blur-pool")));
}

TEST_F(InteropTest, a_training_begins_with_another_programs_weights) {
  const fs::path output = folder_->path() / "transfer";
  const ProgramResult result = train(output, {"--init-from", foreign(), "--new-head"});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, AllOf(HasSubstr("'" + foreign().string() + "'"), HasSubstr("10 classes")));
}

TEST_F(InteropTest, a_pickle_is_never_opened) {
  const fs::path pickle = folder_->path() / "weights.pth";
  std::ofstream(pickle) << "\x80\2}q";
  const std::string words = "'" + pickle.string() + "'";
  EXPECT_THAT(refusal(evaluate(pickle, {"--model", "lenet"}), 2), HasSubstr(words));
  EXPECT_THAT(refusal(train(folder_->path() / "never", {"--init-from", pickle}), 2), HasSubstr(words));
}

TEST_F(InteropTest, inspect_lists_another_programs_weights) {
  const ProgramResult result = run_program({built_program("inspect"), foreign()});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("(safetensors)\n  values     62006 in 10 tensors\n  weights    "));
  EXPECT_THAT(result.output, HasSubstr("conv1.weight                              [6, 3, 5, 5]\n"));
}

TEST_F(InteropTest, an_exported_model_comes_back_as_it_went) {
  const fs::path exported = folder_->path() / "exported.safetensors";
  const ProgramResult result = run_program({built_program("export_model"), model(), "--safetensors", exported});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr(fmt::format("'{}' written (", exported.string())));
  EXPECT_EQ(evaluate(exported).output, evaluate(model()).output) << "its metadata say the model";
  EXPECT_THAT(refusal(evaluate(exported, {"--model", "resnet20"}), 2),
              AllOf(HasSubstr("'" + exported.string() + "'"), HasSubstr("'lenet'"), HasSubstr("'resnet20'"),
                    HasSubstr("--model")));
  const ProgramResult inspected = run_program({built_program("inspect"), exported});
  EXPECT_THAT(inspected.output, AllOf(StartsWith("model 'lenet'"), HasSubstr("(safetensors)\n  takes ")));
  EXPECT_THAT(inspected.output, HasSubstr("in 10 tensors\n"));
}

// Else a file that is written would get the number of one of them, and what is printed.
TEST_F(InteropTest, a_model_is_exported_whole_by_a_program_whose_streams_are_closed) {
  const fs::path onnx = folder_->path() / "streams.onnx";
  const fs::path tensors = folder_->path() / "streams.safetensors";
  const auto write = [&](const std::string& closing) {
    return run_program({"sh", "-c", "exec \"$@\" " + closing, "sh", built_program("export_model"), model(), "--onnx",
                        onnx, "--safetensors", tensors});
  };
  const auto bytes = [](const fs::path& file) { return read_file(file, 1 << 24); };
  ASSERT_EQ(write("").exit_code, 0);
  const std::string whole_onnx = bytes(onnx);
  const std::string whole_tensors = bytes(tensors);
  // Words that nobody can read are a failure, as they are elsewhere.
  const std::map<std::string, int> codes = {{"<&- >&- 2>&-", 1}, {">&- 2>&-", 1}, {"<&- 2>&-", 0}, {"<&- >&-", 1}};
  for (const auto& [closing, code] : codes) {
    fs::remove(onnx);
    fs::remove(tensors);
    EXPECT_EQ(write(closing).exit_code, code) << closing;
    EXPECT_EQ(bytes(onnx), whole_onnx) << closing;
    EXPECT_EQ(bytes(tensors), whole_tensors) << closing;
  }
}

TEST_F(InteropTest, metadata_of_an_exported_model_are_checked) {
  const fs::path exported = folder_->path() / "of_strange_metadata.safetensors";
  const ModelFile own = read_weights(model());
  const char* const class_names =
      R"(["disk","ring","square","frame","triangle","plus","cross","rows","columns","checkerboard"])";
  std::map<std::string, std::string> metadata = {{"model", "lenet"},
                                                 {"classes", class_names},
                                                 {"sample_shape", "[32,32,3]"},
                                                 {"mean", fmt::format("[{}]", fmt::join(own.mean, ","))},
                                                 {"deviation", fmt::format("[{}]", fmt::join(own.deviation, ","))}};
  const auto said = [&](const char* name, const std::string& text) {
    auto strange = metadata;
    strange[name] = text;
    write_file_atomically(exported, safetensors_image(read_weights(model()).entries, strange));
    return evaluate(exported);
  };
  EXPECT_THAT(refusal(said("classes", "a, b"), 65), HasSubstr("'classes'"));
  EXPECT_THAT(refusal(said("sample_shape", "[32,32]"), 65), HasSubstr("'sample_shape'"));
  EXPECT_THAT(refusal(said("deviation", "[0.5,0.5,0]"), 65), AllOf(HasSubstr("'mean'"), HasSubstr("'deviation'")));
  EXPECT_THAT(refusal(said("model", "llama"), 2), HasSubstr("'llama'"));
  metadata.erase("mean");
  EXPECT_THAT(refusal(said("model", "llama"), 2), HasSubstr("--model"));
}

// Python's own JSON reader sees where each tensor lies.
TEST_F(InteropTest, safetensors_are_those_of_the_models_file_to_another_reader) {
  const fs::path exported = folder_->path() / "read.safetensors";
  ASSERT_EQ(run_program({built_program("export_model"), model(), "--safetensors", exported}).exit_code, 0);
  const fs::path script = folder_->path() / "read.py";
  std::ofstream(script) << "import json, struct, sys\n"
                           "data = open(sys.argv[1], 'rb').read()\n"
                           "size = struct.unpack('<Q', data[:8])[0]\n"
                           "header, values = json.loads(data[8:8 + size]), data[8 + size:]\n"
                           "assert size % 8 == 0 and header.pop('__metadata__')['model'] == 'lenet'\n"
                           "for name, tensor in sorted(header.items()):\n"
                           "    begin, end = tensor['data_offsets']\n"
                           "    count = (end - begin) // 4\n"
                           "    first = struct.unpack('<f', values[begin:begin + 4])[0]\n"
                           "    print(name, tensor['dtype'], *tensor['shape'], count, '%.9g' % first)\n";
  const ProgramResult read = run_program({"python3", script, exported});
  EXPECT_EQ(read.exit_code, 0) << read.errors;
  std::string expected;
  for (const ParameterStore::Entry& entry : read_weights(model()).entries) {
    expected += fmt::format("{} F32 {} {} {:.9g}\n", entry.name, fmt::join(entry.dims, " "), entry.values.size(),
                            entry.values[0]);
  }
  EXPECT_EQ(read.output, expected);
}

TEST_F(InteropTest, a_checkpoint_is_exported_as_its_model) {
  const fs::path of_model = folder_->path() / "model.onnx";
  const fs::path of_checkpoint = folder_->path() / "checkpoint.onnx";
  fs::path checkpoint;
  for (const auto& entry : fs::directory_iterator(folder_->path() / "run" / "checkpoints")) {
    if (entry.path().extension() == ".h5") checkpoint = std::max(checkpoint, entry.path());
  }
  EXPECT_EQ(run_program({built_program("export_model"), model(), "--onnx", of_model}).exit_code, 0);
  EXPECT_EQ(run_program({built_program("export_model"), checkpoint, "--onnx", of_checkpoint}).exit_code, 0);
  EXPECT_EQ(read_file(of_model, 1 << 20), read_file(of_checkpoint, 1 << 20));
}

TEST_F(InteropTest, what_cannot_be_exported_is_told_and_nothing_is_written) {
  const auto exported = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {built_program("export_model"), model()};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  };
  EXPECT_THAT(refusal(exported({}), 2), AllOf(HasSubstr("--onnx"), HasSubstr("--safetensors")));
  EXPECT_THAT(refusal(exported({"--onnx", model()}), 2),
              AllOf(HasSubstr("'" + model().string() + "' of --onnx"), HasSubstr("MODEL")));
  EXPECT_EQ(evaluate(model()).exit_code, 0);
  const fs::path other = folder_->path() / "other.json";
  write_file_atomically(other, "{}");
  EXPECT_THAT(refusal(exported({"--onnx", other}), 2),
              AllOf(HasSubstr("'" + other.string() + "'"), HasSubstr("--onnx")));
  EXPECT_THAT(refusal(exported({"--safetensors", other}), 2),
              AllOf(HasSubstr("'" + other.string() + "'"), HasSubstr("--safetensors")));
  EXPECT_EQ(read_file(other, 100), "{}");
  const fs::path same = folder_->path() / "same";
  EXPECT_THAT(refusal(exported({"--onnx", same, "--safetensors", folder_->path() / "." / "same"}), 2),
              AllOf(HasSubstr("'" + (folder_->path() / "." / "same").string() + "' of --safetensors"),
                    HasSubstr("'" + same.string() + "' of --onnx")));
  EXPECT_FALSE(fs::exists(same));
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(exported({"--onnx", same, "--safetensors", folder_->path() / "other"}).exit_code, 0) << "its own again";
  }
  const fs::path nowhere = folder_->path() / "nowhere" / "model.onnx";
  EXPECT_THAT(refusal(exported({"--onnx", nowhere}), 2), HasSubstr("No such file or directory"));
  const fs::path onnx = folder_->path() / "of_foreign.onnx";
  EXPECT_THAT(refusal(run_program({built_program("export_model"), foreign(), "--onnx", onnx}), 65), HasSubstr("HDF5"));
  EXPECT_FALSE(fs::exists(onnx));
}

// [rows, columns] of a data set in a file of ours, or [rows].
template <typename Value>
std::vector<Value> values_in(const fs::path& file, const char* name, hid_t type, std::vector<hsize_t>& dims) {
  const Hid<H5Fclose> opened(check_h5(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "open"));
  const Hid<H5Dclose> data(check_h5(H5Dopen2(opened, name, H5P_DEFAULT), "open"));
  const Hid<H5Sclose> space(check_h5(H5Dget_space(data), "look at"));
  dims.resize(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  std::vector<Value> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  check_h5(H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "read");
  return values;
}

TEST_F(InteropTest, logits_are_those_of_the_predictions_on_any_number_of_ranks) {
  const fs::path logits = folder_->path() / "logits.h5";
  const fs::path table = folder_->path() / "of logits.csv";
  std::vector<std::string> files;
  for (const int ranks : {1, 2}) {
    const ProgramResult result =
        run_program(under_mpirun(ranks, {built_program("evaluate"), "--model-file", model(), "--data", data(),
                                         "--threads", "1", "--logits", logits, "--predictions", table}));
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    files.push_back(read_file(logits, 1 << 24));
  }
  EXPECT_EQ(files[0], files[1]);
  std::vector<hsize_t> dims;
  const auto values = values_in<float>(logits, "logits", H5T_NATIVE_FLOAT, dims);
  const hsize_t classes = 10;
  std::istringstream rows(read_file(table, 1 << 24));
  std::string row;
  std::getline(rows, row);
  std::size_t samples = 0;
  std::vector<std::int32_t> labels;
  for (; std::getline(rows, row); ++samples) {
    const auto* const own = values.data() + samples * classes;
    const auto first = row.find(',');
    const auto second = row.find(',', first + 1);
    labels.push_back(std::stoi(row.substr(first + 1)));
    EXPECT_EQ(std::max_element(own, own + classes) - own, std::stoi(row.substr(second + 1))) << row;
  }
  EXPECT_EQ(dims, (std::vector<hsize_t>{samples, classes}));
  EXPECT_EQ(values_in<std::int32_t>(logits, "labels", H5T_NATIVE_INT32, dims), labels);
}

TEST_F(InteropTest, a_place_for_logits_is_looked_at_before_the_work) {
  const auto refused = [](const fs::path& file, const std::string& sentence) {
    const ProgramResult result = run_program(
        {built_program("evaluate"), "--model-file", model(), "--data", data(), "--threads", "1", "--logits", file});
    EXPECT_EQ(result.exit_code, 2) << result.errors;
    EXPECT_NE(result.errors.find(sentence), std::string::npos) << result.errors;
    EXPECT_EQ(result.output.find("top-1"), std::string::npos) << result.output;
  };
  const fs::path other = folder_->path() / "copy.h5";
  fs::copy_file(model(), other);
  refused(other, "'" + other.string() + "'");
  refused(folder_->path() / "absent" / "logits.h5", "No such file or directory");
}

}  // namespace lockstep::interop_test
