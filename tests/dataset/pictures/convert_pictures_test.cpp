// On any number of ranks: pictures of all kinds become shards of the same bytes, and every odd file is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/io/file.hpp"
#include "dataset/dataset.hpp"
#include "dataset/pictures/picture_source.hpp"
#include "dataset/pictures/tar_archive.hpp"
#include "dataset/shards/convert.hpp"
#include "dataset/shards/shard_record.hpp"
#include "dataset/sources/sample_source.hpp"
#include "picture/decode.hpp"
#include "picture/golden_pictures.hpp"
#include "picture/jpeg.hpp"
#include "picture/resize.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::convert_pictures_test {

namespace fs = std::filesystem;
using test::GoldenPictures;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// The bytes of all pictures.
std::set<std::string> files_of(const Dataset& data) {
  std::set<std::string> files;
  for (std::int64_t sample = 0; sample < data.samples(); ++sample) {
    files.emplace(reinterpret_cast<const char*>(data.jpeg(sample).data()), data.jpeg(sample).size());
  }
  return files;
}

class ConvertPicturesTest : public ::testing::Test {
 protected:
  ConvertPicturesTest() {
    folder_ = world_.broadcast(own_.path().string(), 0);
    if (world_.rank() == 0) write_pictures();
    world_.barrier();
    options_.output = folder_ / "out";
    options_.bytes_per_shard = 8000;  // a few files each
  }
  ~ConvertPicturesTest() override { world_.barrier(); }

  void run() const { convert(world_, *open_pictures(world_, folder_ / "set", storage_, 1), options_); }

  template <typename Change>
  void on_rank_0(Change change) const {
    world_.barrier();
    if (world_.rank() == 0) change();
    world_.barrier();
  }

  fs::path picture(const std::string& name) const { return folder_ / "set" / "train" / name; }

  void write_pictures() const {
    const GoldenPictures golden;
    for (const char* const split : {"train", "test"}) {
      for (const char* const name : {"cat", "dog"}) fs::create_directories(folder_ / "set" / split / name);
    }
    for (const char* const name :
         {"jpeg", "jpeg_444", "jpeg_gray", "jpeg_cmyk", "jpeg_progressive", "jpeg_exif_6", "png", "png_transparent"}) {
      const std::string letter(1, name[0]);
      const fs::path file = fs::path(letter == "j" ? "cat" : "dog") / (std::string(name) + ".jpg");
      write_file_atomically(picture(file.string()), golden.file(name));
    }
    const std::vector<std::byte> whole = golden.file("jpeg");
    write_file_atomically(picture("dog/cut.jpg"), std::span(whole).first(whole.size() - 300));
    write_file_atomically(picture("dog/a \"page\",\n.jpg"), "<html>");
    write_other_picture("test/cat/a.jpg", 90);
  }

  // A picture whose bytes are the quality's own.
  void write_other_picture(const fs::path& name, int quality) const {
    fs::create_directories((folder_ / "set" / name).parent_path());
    const std::vector<std::uint8_t> file = encode_jpeg(GoldenPictures().decoded("jpeg"), quality);
    write_file_atomically(folder_ / "set" / name, std::as_bytes(std::span(file)));
  }

  // File name and content of everything below the output folder.
  std::map<std::string, std::string> output() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(options_.output)) {
      if (!entry.is_regular_file()) continue;
      files[fs::relative(entry.path(), options_.output).string()] = read_file(entry.path(), 1 << 24);
    }
    return files;
  }

  Communicator world_{MPI_COMM_WORLD};
  TemporaryFolder own_;
  fs::path folder_;
  PictureStorage storage_;
  ConvertOptions options_;
};

TEST_F(ConvertPicturesTest, shards_do_not_depend_on_the_number_of_ranks) {
  run();
  std::map<std::string, std::string> all = output();
  world_.barrier();
  EXPECT_GE(all.size(), 6U);
  options_.output = own_.path() / "alone";
  const Communicator self(MPI_COMM_SELF);
  convert(self, *open_pictures(self, folder_ / "set", storage_, 1), options_);
  EXPECT_EQ(output(), all);
}

TEST_F(ConvertPicturesTest, plain_files_are_stored_as_they_are_and_others_written_anew) {
  run();
  const GoldenPictures golden;
  const Dataset train(options_.output / "train");
  EXPECT_EQ(train.samples(), 8);
  EXPECT_EQ(train.manifest().store, SampleStore::jpeg);
  EXPECT_EQ(train.manifest().shape, (SampleShape{224, 224, 3}));
  const OwnedPicture progressive = decode_picture(golden.file("jpeg_progressive")).picture;
  int as_they_are = 0;
  int without_loss = 0;
  for (std::int64_t sample = 0; sample < train.samples(); ++sample) {
    const DecodedPicture decoded = decode_picture(train.jpeg(sample));
    EXPECT_TRUE(decoded.is_plain_jpeg);
    EXPECT_EQ(decoded.picture.size, train.picture_size(sample));
    if (decoded.picture.pixels == progressive.pixels) ++without_loss;
    for (const char* const name : {"jpeg", "jpeg_444", "jpeg_gray"}) {
      if (std::ranges::equal(train.jpeg(sample), golden.file(name))) ++as_they_are;
    }
  }
  EXPECT_EQ(as_they_are, 3);
  EXPECT_EQ(without_loss, 2) << "the progressive file, and the same picture that was none";
}

TEST_F(ConvertPicturesTest, pictures_in_imagenets_archives_are_stored_as_they_are) {
  const fs::path set = folder_ / "imagenet";
  on_rank_0([&] {
    const fs::path work = folder_ / "work";
    for (const char* const name : {"class", "train", "val"}) fs::create_directories(work / name);
    fs::create_directories(set);
    write_file_atomically(work / "class" / "a.JPEG", GoldenPictures().file("jpeg"));
    test::make_tar(work / "train" / "n01440764.tar", work / "class");
    write_file_atomically(work / "val" / "ILSVRC2012_val_00000001.JPEG", GoldenPictures().file("jpeg_444"));
    test::make_tar(set / "ILSVRC2012_img_train.tar", work / "train");
    test::make_tar(set / "ILSVRC2012_img_val.tar", work / "val");
    write_file_atomically(set / "map_clsloc.txt", "n01440764 7 tench\n");
    write_file_atomically(set / "ILSVRC2012_validation_ground_truth.txt", "7\n");
  });
  storage_.allowed = {"one-class"};
  convert(world_, *open_pictures(world_, set, storage_, 1), options_);
  const Dataset train(options_.output / "train");
  const Dataset test(options_.output / "test");
  EXPECT_TRUE(std::ranges::equal(train.jpeg(0), GoldenPictures().file("jpeg")));
  EXPECT_TRUE(std::ranges::equal(test.jpeg(0), GoldenPictures().file("jpeg_444")));
  EXPECT_EQ(train.manifest().classes, std::vector<std::string>{"n01440764"});
  EXPECT_EQ(test.label(0), 0);
}

// Val/ was passed over without a word where there was a test/.
TEST_F(ConvertPicturesTest, a_validation_folder_becomes_the_validation_split) {
  on_rank_0([&] {
    write_other_picture("Val/dog/b.jpg", 80);
    write_other_picture("Val/cat/c.jpg", 70);
  });
  run();
  EXPECT_EQ(Dataset(options_.output / "train").samples(), 8);
  EXPECT_EQ(Dataset(options_.output / "validation").samples(), 2);
  EXPECT_EQ(Dataset(options_.output / "test").samples(), 1);
  world_.barrier();
  if (world_.size() > 1) return;  // the rank that finds it ends the others
  options_.validation = 1;
  expect_error(Failure::usage, {"--validation", "Val"}, [&] { run(); });
}

// A network was tested on what it had learned.
TEST_F(ConvertPicturesTest, pictures_of_two_splits_are_named_and_refused_unless_that_is_allowed) {
  on_rank_0([&] {
    for (const char* const name : {"jpeg", "jpeg_444", "png"}) {
      write_file_atomically(folder_ / "set" / "test" / "dog" / name, GoldenPictures().file(name));
    }
    write_file_atomically(folder_ / "set" / "test" / "dog" / "page.jpg", "<html>");
    fs::create_symlink("../../train/cat/jpeg_gray.jpg", folder_ / "set" / "test" / "cat" / "link.jpg");
  });
  storage_.allowed = {"duplicates"};
  run();
  if (world_.rank() == 0) {
    const std::string odd = read_file(options_.output / "odd_files.csv", 1 << 20);
    EXPECT_THAT(odd, ContainsRegex("test/cat/link.jpg,yes,.*'train/cat/jpeg_gray.jpg' .training.\n"));
    EXPECT_THAT(odd, ContainsRegex("test/dog/png,yes,.*'train/dog/png.jpg' .training.\n"));
    EXPECT_THAT(odd, HasSubstr("test/dog/page.jpg,no,"));
    EXPECT_EQ(std::ranges::count(odd, '\n'), 11);
  }
  world_.barrier();
  storage_.allowed = {};
  expect_error(Failure::usage, {"--allow", "test/cat/link.jpg", "train/cat/jpeg_gray.jpg"}, [&] { run(); });
}

// They were learned with two labels, without a word.
TEST_F(ConvertPicturesTest, pictures_of_two_classes_are_told_and_used) {
  on_rank_0([&] { write_file_atomically(picture("dog/copy.jpg"), GoldenPictures().file("jpeg_444")); });
  if (world_.rank() == 0) ::testing::internal::CaptureStderr();
  run();
  if (world_.rank() == 0) {
    const std::string warnings = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(warnings,
                HasSubstr("1 picture is in two classes: 'train/dog/copy.jpg' (training) has the same bytes as "
                          "'train/cat/jpeg_444.jpg' (training)"));
    EXPECT_THAT(read_file(options_.output / "odd_files.csv", 1 << 20), HasSubstr("train/dog/copy.jpg,yes,"));
  }
  EXPECT_EQ(Dataset(options_.output / "train").samples(), 9);
}

// Copies of training pictures got into the validation split.
TEST_F(ConvertPicturesTest, copies_are_all_in_one_split) {
  on_rank_0([&] {
    for (const int quality : {50, 60, 70, 80}) {
      for (const char* const copy : {"a", "b", "c"}) {
        write_other_picture(fmt::format("train/cat/{}{}.jpg", quality, copy), quality);
      }
    }
  });
  options_.validation = 8;
  run();
  const Dataset train(options_.output / "train");
  const Dataset validation(options_.output / "validation");
  const std::set<std::string> trained = files_of(train);
  for (const std::string& held_out : files_of(validation)) EXPECT_FALSE(trained.contains(held_out));
  EXPECT_EQ(train.samples() + validation.samples(), 20);
  world_.barrier();
  if (world_.size() > 1) return;  // the rank that finds it ends the others
  const fs::path record = options_.output / "conversion.json";
  std::string of_earlier_version = read_file(record, 1 << 16);
  const std::size_t copies = of_earlier_version.find("\"copies\"");
  of_earlier_version.erase(copies, of_earlier_version.find('\n', copies) + 1 - copies);
  write_file_atomically(record, of_earlier_version);
  expect_error(Failure::usage, {"--validation", "--output"}, [&] { run(); });
}

// Whether a folder with a copied picture was refused depended on the test split that was drawn.
TEST_F(ConvertPicturesTest, copies_are_drawn_together_for_the_test) {
  on_rank_0([&] {
    fs::remove_all(folder_ / "set");
    for (int quality = 50; quality < 70; ++quality) {
      for (const char* const copy : {"a", "b"}) {
        write_other_picture(fmt::format("cat/{}{}.jpg", quality, copy), quality);
      }
      write_other_picture(fmt::format("owl/{}.jpg", quality), 90);
    }
  });
  run();
  const Dataset train(options_.output / "train");
  const Dataset test(options_.output / "test");
  EXPECT_EQ(train.samples() + test.samples(), 60);
  // A tenth of the cats, with their copies. The owls are all the same, and needed for training.
  EXPECT_EQ(test.samples(), 4);
  EXPECT_EQ(files_of(test).size(), 2U);
  const std::set<std::string> trained = files_of(train);
  for (const std::string& tested : files_of(test)) EXPECT_FALSE(trained.contains(tested));
}

// 10 pictures before, 8 samples afterwards, and nothing between them.
TEST_F(ConvertPicturesTest, files_that_are_left_out_are_counted_by_split) {
  if (world_.rank() == 0) ::testing::internal::CaptureStdout();
  run();
  if (world_.rank() != 0) return;
  const std::string output = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(output, ContainsRegex("training: 10 pictures "));
  EXPECT_THAT(output, ContainsRegex("out/train: 8 samples in [0-9]+ shards, 2 files left out\n"));
  EXPECT_THAT(output, ContainsRegex("out/test: 1 sample in 1 shard\n"));
}

TEST_F(ConvertPicturesTest, files_of_the_system_do_not_end_a_strict_conversion) {
  on_rank_0([&] {
    for (const char* const name : {"dog/cut.jpg", "dog/a \"page\",\n.jpg"}) fs::remove(picture(name));
    write_file_atomically(picture("dog/Thumbs.db"), "thumbnails");
  });
  storage_.is_strict = true;
  run();
  EXPECT_THAT(read_file(options_.output / "odd_files.csv", 1 << 20), HasSubstr("train/dog/Thumbs.db,no,"));
}

TEST_F(ConvertPicturesTest, odd_files_are_named_with_their_reason) {
  run();
  const std::string text = read_file(options_.output / "odd_files.csv", 1 << 20);
  EXPECT_EQ(text,
            "file,taken,remark\n"
            "train/cat/jpeg_cmyk.jpg,yes,is CMYK\n"
            "train/cat/jpeg_exif_6.jpg,yes,has EXIF orientation 6\n"
            "\"train/dog/a \"\"page\"\",\\x0a.jpg\",no,is neither JPEG nor PNG\n"
            "train/dog/cut.jpg,no,is truncated\n"
            "train/dog/png_transparent.jpg,yes,is transparent\n");
}

// A shard was written that no reader took: "sample 1 has 224 x 112000 pixels".
TEST_F(ConvertPicturesTest, a_picture_that_would_be_too_long_for_a_shard_is_left_out) {
  on_rank_0([&] {
    const OwnedPicture strip{std::vector<std::uint8_t>(300 * 3), {1, 300}};
    const std::vector<std::uint8_t> file = encode_jpeg(strip, 90);
    write_file_atomically(picture("cat/strip.jpg"), std::as_bytes(std::span(file)));
  });
  storage_.store = SampleStore::pictures;
  storage_.side = 224;
  run();
  EXPECT_THAT(read_file(options_.output / "odd_files.csv", 1 << 20),
              ContainsRegex("train/cat/strip.jpg,no,.* 224 x 67200 .* 65536 "));
  const Dataset train(options_.output / "train");
  EXPECT_LE(train.picture(0).size.width, 65536);
}

// They ended the conversion.
TEST_F(ConvertPicturesTest, files_that_are_larger_than_any_picture_are_left_out) {
  on_rank_0([&] {
    for (const char* const name : {"train/cat/video.jpg", "test/dog/copy.jpg"}) {
      write_file_atomically(folder_ / "set" / name, "not a picture");
      fs::resize_file(folder_ / "set" / name, (std::uintmax_t{1} << 28) + 1);
    }
  });
  run();
  const std::string odd = read_file(options_.output / "odd_files.csv", 1 << 20);
  EXPECT_THAT(odd, HasSubstr("train/cat/video.jpg,no,\"has 268435457 bytes, more than any picture\"\n"));
  EXPECT_THAT(odd, HasSubstr("test/dog/copy.jpg,no,"));
  world_.barrier();
  if (world_.size() > 1) return;  // the rank that finds it ends the others
  storage_.is_strict = true;
  options_.output = own_.path() / "strict";
  expect_error(Failure::bad_data, {"--strict"}, [&] { run(); });
}

TEST_F(ConvertPicturesTest, pixels_are_stored_with_the_shorter_side_asked_for) {
  storage_.store = SampleStore::pictures;
  storage_.side = 20;
  run();
  const Dataset train(options_.output / "train");
  EXPECT_EQ(train.manifest().shape, (SampleShape{20, 20, 3}));
  const GoldenPictures golden;
  OwnedPicture expected;
  resize(golden.decoded("png"), {{0, 0, {37, 53}}, {20, 28}}, expected);
  bool found = false;
  for (std::int64_t sample = 0; sample < train.samples(); ++sample) {
    const Picture picture = train.picture(sample);
    EXPECT_EQ(std::min(picture.size.height, picture.size.width), 20);
    found = found || std::ranges::equal(picture.pixels, expected.pixels);
  }
  EXPECT_TRUE(found) << "the PNG's pixels are not there";
}

TEST_F(ConvertPicturesTest, large_pictures_are_made_smaller_where_that_is_asked_for) {
  storage_.longest_side = 40;
  run();
  const Dataset train(options_.output / "train");
  for (std::int64_t sample = 0; sample < train.samples(); ++sample) {
    const PictureSize size = train.picture_size(sample);
    EXPECT_EQ(std::max(size.height, size.width), 40);
    EXPECT_EQ(decode_picture(train.jpeg(sample)).picture.size, size);
  }
}

TEST_F(ConvertPicturesTest, a_strict_conversion_ends_at_a_file_that_would_be_skipped) {
  storage_.is_strict = true;
  if (world_.size() > 1) GTEST_SKIP() << "the rank that finds it ends the others";
  EXPECT_THAT(message_of(Failure::bad_data, [&] { run(); }), HasSubstr("(--strict)"));
}

// Killed before the manifest: shards and their records are there. What is kept is not read again, which shows where the
// pictures have been replaced meanwhile by others as long.
TEST_F(ConvertPicturesTest, a_run_goes_on_from_the_shards_that_are_there) {
  run();
  const std::map<std::string, std::string> whole = output();
  const fs::path train = options_.output / "train";
  on_rank_0([&] {
    const Manifest manifest = read_manifest(train);
    fs::remove(train / manifest_file);
    for (const ShardEntry& entry : manifest.shards) {
      ShardRecord record{entry, PixelSums(3), {}};
      record.sums.add(std::vector<std::uint8_t>{10, 20, 30});
      write_file_atomically(train / fs::path(entry.file).replace_extension(".json"), to_text(record));
    }
    fs::remove(train / manifest.shards.back().file);
  });
  run();
  const Manifest made = read_manifest(train);
  const std::map<std::string, std::string> now = output();
  for (const ShardEntry& entry : made.shards) {
    EXPECT_EQ(now.at("train/" + entry.file), whole.at("train/" + entry.file)) << entry.file;
  }
  EXPECT_EQ(now.size(), whole.size()) << "records are left";
  // All but the shard that was made again count with the sums of their records: hardly any pixel.
  EXPECT_NE(now.at("train/manifest.json"), whole.at("train/manifest.json"));
}

// Of a shard without one picture there is a record and no file.
TEST_F(ConvertPicturesTest, a_shard_of_files_that_are_no_pictures_is_not_made_again) {
  options_.bytes_per_shard = 1;
  run();
  const fs::path train = options_.output / "train";
  EXPECT_EQ(read_manifest(train).shards.size(), 8U);
  on_rank_0([&] {
    fs::remove(train / manifest_file);
    for (int shard = 0; shard < 10; ++shard) {
      ShardRecord record{{}, PixelSums(3), {{"seen before", true, "is odd"}}};
      record.entry.file = fmt::format("train-{:05}.h5", shard);
      if (fs::exists(train / record.entry.file)) continue;
      write_file_atomically((train / record.entry.file).replace_extension(".json"), to_text(record));
    }
  });
  run();
  EXPECT_EQ(read_manifest(train).shards.size(), 8U);
  EXPECT_THAT(read_file(options_.output / "odd_files.csv", 1 << 20), HasSubstr("seen before,no,is odd\n"));
}

// With a larger data set, an earlier version's blocks are smaller.
TEST_F(ConvertPicturesTest, a_shard_with_hashes_of_other_blocks_is_made_again) {
  run();
  const std::map<std::string, std::string> whole = output();
  const fs::path train = options_.output / "train";
  on_rank_0([&] {
    ShardRecord record{read_manifest(train).shards.front(), PixelSums(3), {}};
    record.entry.block_hashes.push_back(record.entry.block_hashes.front());
    fs::remove(train / manifest_file);
    write_file_atomically(train / "train-00000.json", to_text(record));
  });
  run();
  EXPECT_EQ(output(), whole);
}

// It was never written, and the data set was called complete.
TEST_F(ConvertPicturesTest, a_list_of_odd_files_that_could_not_be_written_is_written_by_the_next_run) {
  if (world_.size() > 1) GTEST_SKIP() << "the rank that fails ends the others";
  run();
  const std::map<std::string, std::string> whole = output();
  const fs::path odd_files = options_.output / "odd_files.csv";
  fs::remove(options_.output / "train" / manifest_file);
  fs::remove(odd_files);
  fs::create_directory(odd_files);
  EXPECT_THROW(run(), Error);
  fs::remove(odd_files);
  run();
  EXPECT_EQ(output(), whole);
}

TEST_F(ConvertPicturesTest, other_pictures_in_the_folder_make_another_data_set) {
  run();
  on_rank_0([&] { write_file_atomically(picture("cat/more.jpg"), GoldenPictures().file("jpeg")); });
  if (world_.size() > 1) GTEST_SKIP() << "the rank that finds it ends the others";
  expect_error(Failure::usage, {options_.output.string(), "--source", "--output"}, [&] { run(); });
}

TEST_F(ConvertPicturesTest, a_conversion_goes_on_by_another_path_or_from_an_earlier_version) {
  if (world_.size() > 1) GTEST_SKIP() << "on any number of ranks, rank 0 decides";
  run();
  const fs::path record = options_.output / "conversion.json";
  const std::string text = read_file(record, 1 << 16);
  const auto source = open_pictures(world_, folder_ / "set" / ".", storage_, 1);
  EXPECT_NO_THROW(convert(world_, *source, options_));
  EXPECT_EQ(read_file(record, 1 << 16), text);
  const std::string& now = source->description().fingerprint;
  std::string earlier = text;
  earlier.replace(earlier.find(now), now.size(), source->description().earlier_fingerprint);
  EXPECT_NE(earlier, text);
  write_file_atomically(record, earlier);
  EXPECT_NO_THROW(convert(world_, *source, options_));
}

// What decides bytes decides whether a run may go on.
TEST_F(ConvertPicturesTest, another_quality_makes_another_data_set) {
  if (world_.size() > 1) GTEST_SKIP() << "the rank that finds it ends the others";
  run();
  storage_.quality = 50;
  expect_error(Failure::usage, {options_.output.string(), "--quality", "quality 95", "quality 50"}, [&] { run(); });
  storage_.store = SampleStore::pictures;
  expect_error(Failure::usage, {"--store", "quality 95", "the shorter side 256"}, [&] { run(); });
}

TEST_F(ConvertPicturesTest, a_split_without_one_picture_is_refused) {
  if (world_.size() > 1) GTEST_SKIP() << "the rank that finds it ends the others";
  write_file_atomically(folder_ / "set" / "test" / "cat" / "a.jpg", "nothing");
  expect_error(Failure::bad_data, {"test/cat/a.jpg"}, [&] { run(); });
}

}  // namespace lockstep::convert_pictures_test
