// A pipe, a socket, a device, a folder or a link that leads nowhere, in the place of each file that is read.
//
// Opening a pipe waited for a writer that never came, and /dev/zero was read up to 64 GiB.
#include "support/special_files.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "dataset/dataset.hpp"
#include "dataset/shards/convert.hpp"
#include "dataset/shards/verify.hpp"
#include "dataset/sources/sample_source.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "files/checkpoint/checkpoint_folder.hpp"
#include "runtime/plan_file.hpp"
#include "support/messages.hpp"
#include "support/samples/small_checkpoint.hpp"
#include "support/samples/small_cifar.hpp"
#include "support/samples/small_data_set.hpp"
#include "train/inspection.hpp"

namespace lockstep::special_files_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SpecialFilesTest : public testing::TestWithParam<SpecialFile> {
 protected:
  static bool is_link() { return GetParam() == SpecialFile::dangling_link || GetParam() == SpecialFile::link_loop; }
  static std::string system_reason() {
    return GetParam() == SpecialFile::link_loop ? "Too many levels of symbolic links" : "No such file or directory";
  }

  // Puts it at `path` and expects `read` to name it.
  static void expect_named(const fs::path& path, const std::function<void()>& read) {
    const SpecialFileAt special(GetParam(), path);
    EXPECT_EQ(error_sentence(read), special.sentence());
  }

  TemporaryFolder folder_;
  const WithinSeconds limit_{60};
};

TEST_P(SpecialFilesTest, a_model_or_checkpoint_is_named) {
  const fs::path path = folder_.path() / "model.h5";
  expect_named(path, [&] { read_weights(path); });
  expect_named(path, [&] { read_checkpoint(path); });
  expect_named(path, [&] { read_weights(path); });
  if (GetParam() != SpecialFile::directory) expect_named(path, [&] { describe_file(path); });  // may be a data set
}

TEST_P(SpecialFilesTest, a_checkpoint_in_its_folder_is_named_and_passed_over) {
  CheckpointFolder folder(std::make_shared<FolderLock>(folder_.path(), "--checkpoints"), {});
  folder.resume_after(-1, {});
  const fs::path good = folder.write(small_checkpoint(12));
  const SpecialFileAt special(GetParam(), folder_.path() / "step-000000000013.h5");
  testing::internal::CaptureStderr();
  const std::optional<CheckpointFolder::Found> found = folder.newest_valid();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(special.sentence()));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->path, good);
}

TEST_P(SpecialFilesTest, a_shard_is_named) {
  write_small_data_set(folder_.path(), {2, 2, 3}, 5, 5);
  const fs::path path = folder_.path() / "shard-0.h5";
  const Manifest manifest = read_manifest(folder_.path());
  const SpecialFileAt special(GetParam(), path);
  const std::string damage = damage_of(folder_.path(), manifest.shards[0], manifest.block_bytes).value_or("whole");
  if (is_link()) {
    const bool is_missing = GetParam() == SpecialFile::dangling_link;
    expect_message(error_sentence([&] { Dataset{folder_.path()}; }, is_missing ? Failure::bad_data : Failure::usage),
                   {path.string()});
    expect_message(damage, {path.string()});
  } else {
    EXPECT_EQ(error_sentence([&] { Dataset{folder_.path()}; }), special.sentence());
    EXPECT_EQ(damage, special.sentence());
  }
}

TEST_P(SpecialFilesTest, a_manifest_is_named) {
  const fs::path path = folder_.path() / "manifest.json";
  if (GetParam() != SpecialFile::dangling_link) return expect_named(path, [&] { read_manifest(folder_.path()); });
  const SpecialFileAt special(GetParam(), path);
  expect_message(error_sentence([&] { read_manifest(folder_.path()); }), {folder_.path().string()});
}

TEST_P(SpecialFilesTest, a_source_is_named) {
  write_small_cifar(folder_.path());
  const auto cifar = [&] { open_cifar10(folder_.path()); };
  expect_named(folder_.path() / "data_batch_3.bin", cifar);
  write_small_cifar(folder_.path());
  if (GetParam() != SpecialFile::dangling_link) expect_named(folder_.path() / "batches.meta.txt", cifar);
  expect_named(folder_.path() / "train-images-idx3-ubyte", [&] { open_mnist(folder_.path()); });
}

TEST_P(SpecialFilesTest, a_packed_source_is_named) {
  const fs::path packed = folder_.path() / "train-images-idx3-ubyte.gz";
  if (GetParam() != SpecialFile::dangling_link) return expect_named(packed, [&] { open_mnist(folder_.path()); });
  const SpecialFileAt special(GetParam(), packed);
  expect_message(error_sentence([&] { open_mnist(folder_.path()); }), {});
}

TEST_P(SpecialFilesTest, a_record_of_a_conversion_is_named) {
  const auto source = make_synthetic_source(10, 1);
  const Communicator world(MPI_COMM_WORLD);
  const auto make = [&] { convert(world, *source, {.output = folder_.path()}); };
  if (GetParam() != SpecialFile::dangling_link) return expect_named(folder_.path() / "conversion.json", make);
  const SpecialFileAt special(GetParam(), folder_.path() / "conversion.json");
  EXPECT_THAT(error_sentence(make), HasSubstr("'" + folder_.path().string() + "'"));
}

TEST_P(SpecialFilesTest, a_kernel_plan_is_named_and_not_used) {
  const PlanFile plan(folder_.path(), "cpu: some");
  const SpecialFileAt special(GetParam(), plan.path());
  testing::internal::CaptureStderr();
  EXPECT_EQ(plan.read(), "");
  const std::string warning = testing::internal::GetCapturedStderr();
  if (GetParam() == SpecialFile::dangling_link) {
    EXPECT_EQ(warning, "") << "the same as no file";
  } else {
    EXPECT_THAT(warning, HasSubstr(special.sentence()));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryKind, SpecialFilesTest, testing::ValuesIn(all_special_files),
                         [](const auto& instance) { return std::string(special_file_name(instance.param)); });

}  // namespace lockstep::special_files_test
