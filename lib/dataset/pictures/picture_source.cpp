#include "dataset/pictures/picture_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "dataset/pictures/listing/folder_names.hpp"
#include "dataset/pictures/listing/listing.hpp"
#include "dataset/pictures/listing/shared_pictures.hpp"
#include "dataset/pictures/listing/summary.hpp"
#include "dataset/pictures/picture_bytes.hpp"
#include "dataset/pictures/sample_bits.hpp"
#include "dataset/same_data.hpp"
#include "dataset/shards/shard.hpp"
#include "picture/decode.hpp"
#include "picture/jpeg.hpp"
#include "picture/picture_fault.hpp"
#include "picture/resize.hpp"
#include "runtime/failure/contained_failure.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t usual_side = 224;  // input size of ImageNet networks

std::string describe_storage(const PictureStorage& storage) {
  const std::string bits =
      storage.sample_bits ? fmt::format(", {} bits of 16-bit samples", *storage.sample_bits) : std::string();
  if (storage.store == SampleStore::pictures) {
    return fmt::format("as pixels, the shorter side {}{}", storage.side, bits);
  }
  const std::string most =
      storage.longest_side == 0 ? "" : fmt::format(" of at most {} pixels a side", storage.longest_side);
  return fmt::format("as JPEG files{}, quality {} where they are written anew{}", most, storage.quality, bits);
}

class PictureSource final : public SampleSource {
 public:
  PictureSource(PictureList list, const PictureStorage& storage)
      : list_(std::move(list)), storage_(storage), bytes_(list_) {
    const std::int64_t side = storage.store == SampleStore::pictures ? storage.side : usual_side;
    const fs::path whole = fs::weakly_canonical(list_.folder);
    description_ = {
        whole.filename().empty() ? "pictures" : whole.filename().string(),
        fmt::format("pictures from {}, {}; test: {}", whole.string(), describe_storage(storage), list_.test_origin),
        {side, side, 3},
        SampleKind::picture,
        list_.classes,
        storage.store,
        fingerprint(list_),
        earlier_fingerprint(list_),
        list_.validation.empty() ? "" : list_.validation_origin,
        describe_storage(storage)};
  }

  const SourceDescription& description() const override { return description_; }
  std::int64_t samples(SourceSplit split) const override {
    return static_cast<std::int64_t>(list_.files(split).size());
  }
  std::int64_t expected_bytes(SourceSplit split, std::int64_t index) const override {
    // Pixels, for an aspect ratio of 4 : 3.
    if (storage_.store == SampleStore::pictures) return storage_.side * storage_.side * 4;
    return list_.files(split)[static_cast<std::size_t>(index)].bytes;
  }
  std::map<std::int64_t, std::int64_t> training_copies(const Communicator& world) const override {
    return lockstep::training_copies(world, list_);
  }
  std::vector<OddFile> left_out() const override {
    std::vector<OddFile> files = list_.left_out;
    files.insert(files.end(), list_.remarks.begin(), list_.remarks.end());
    return files;
  }

  // Collective. Call before anything is read. Throws as sample_bits_of().
  void find_sample_bits(const Communicator& world) {
    std::vector<const PictureFile*> files;
    for (const std::vector<PictureFile>* split : {&list_.train, &list_.test, &list_.validation}) {
      for (const PictureFile& file : *split) files.push_back(&file);
    }
    const auto file = [&](std::int64_t index) -> const PictureFile& { return *files[static_cast<std::size_t>(index)]; };
    const JudgedBits judged = sample_bits_of(
        world,
        {std::ssize(files), [&](std::int64_t index) { return (list_.folder / file(index).name).string(); },
         [&](std::int64_t index, std::size_t max_bytes) { return bytes_.start_of(file(index), max_bytes); }},
        storage_.sample_bits);
    sample_bits_ = judged.bits;
    description_.sample_bits = judged.noted;
  }

  std::optional<std::int32_t> read(SourceSplit split, std::int64_t index, SourceSample& sample) const override {
    assert(index >= 0 && index < samples(split));
    const PictureFile& file = list_.files(split)[static_cast<std::size_t>(index)];
    sample.file = file.name;
    if (is_system_name(fs::path(file.name).filename().string())) {
      sample.remark = "belongs to the operating system or the storage system";
      return std::nullopt;
    }
    try {
      const std::string bytes = bytes_.all_of(file);
      DecodedPicture decoded = decode_picture(std::as_bytes(std::span(bytes)), sample_bits_);
      require_whole(file, decoded.remark.find("damaged") == std::string::npos, decoded.remark);
      sample.remark = decoded.remark;
      store(std::as_bytes(std::span(bytes)), decoded, sample);
    } catch (const PictureFault& fault) {
      require_whole(file, false, fault.what());
      sample.remark = fault.what();
      return std::nullopt;
    }
    return file.label;
  }

 private:
  void require_whole(const PictureFile& file, bool is_whole, const std::string& message) const {
    require(is_whole || !storage_.is_strict, Failure::bad_data,
            "'{}' {} (--strict). Repair or remove it. Without --strict, it is only listed.",
            printable((list_.folder / file.name).string()), message);
  }

  PictureSize size_in_shard(const PictureSize& whole) const {
    const PictureSize size = with_shorter_side(whole, storage_.side);
    if (std::max(size.height, size.width) > max_picture_side) {
      throw PictureFault(fmt::format("would have {} x {} pixels, but a shard allows at most {} per side", size.height,
                                     size.width, max_picture_side));
    }
    return size;
  }

  void store(std::span<const std::byte> file, DecodedPicture& decoded, SourceSample& sample) const {
    const PictureSize whole = decoded.picture.size;
    if (storage_.store == SampleStore::pictures) {
      resize(decoded.picture, {{0, 0, whole}, size_in_shard(whole)}, sample.picture);
      return;
    }
    const bool is_small_enough =
        storage_.longest_side == 0 || std::max(whole.height, whole.width) <= storage_.longest_side;
    if (is_small_enough) {
      std::swap(sample.picture, decoded.picture);
    } else {
      resize(decoded.picture, {{0, 0, whole}, with_longest_side(whole, storage_.longest_side)}, sample.picture);
    }
    if (is_small_enough && decoded.is_plain_jpeg) {
      const auto* const first = reinterpret_cast<const std::uint8_t*>(file.data());
      sample.jpeg.assign(first, first + file.size());
    } else if (is_small_enough && decoded.is_progressive_jpeg) {
      sample.jpeg = sequential_jpeg(file);
    } else {
      sample.jpeg = encode_jpeg(sample.picture, storage_.quality);
    }
  }

  PictureList list_;
  PictureStorage storage_;
  PictureBytes bytes_;
  SampleBits sample_bits_;
  SourceDescription description_;
};

// Collective. Each rank checks its share of the files on its own node.
void require_same_pictures(const Communicator& world, const PictureList& list) {
  std::vector<fs::path> archives;
  for (const std::string& archive : list.archives) archives.push_back(list.folder / archive);
  std::vector<FileSize> files = sizes_on_rank_0(world, archives);
  for (const std::vector<PictureFile>* split : {&list.train, &list.test, &list.validation}) {
    for (const PictureFile& file : *split) {
      if (file.archive < 0) files.push_back({list.folder / file.name, file.bytes});
    }
  }
  require_same_files(world, files);
}

void print_summary(const PictureList& list) {
  for (const std::string& line : summary_of(list)) log::info("{}", line);
  for (const std::string& line : doubts_about(list)) log::warning("{}", line);
}

// Collective. All ranks get rank 0's list, or its error.
PictureList list_together(const Communicator& world, const fs::path& folder, const PictureStorage& storage,
                          std::uint64_t seed, const MetaMat& meta) {
  PictureList list;
  const std::string text = from_rank_0(world, [&] {
    list = list_pictures(folder, storage, seed, meta);
    print_summary(list);
    return to_text(list);
  });
  return world.rank() == 0 ? std::move(list) : picture_list_from(text);
}

// "2 pictures are in two splits: 'a.jpg' (test) has the same bytes as 'b.jpg' (training), ..."
std::string shared_pictures_message(std::span<const SharedPicture> shared, std::string_view where) {
  constexpr std::size_t max_shown = 3;
  std::string message = fmt::format("{} in two {}: ", counted(shared.size(), "picture is", "pictures are"), where);
  for (std::size_t at = 0; at < std::min(shared.size(), max_shown); ++at) {
    const SharedPicture& one = shared[at];
    message += fmt::format("{}'{}' ({}) has the same bytes as '{}' ({})", at == 0 ? "" : ", ", printable(one.name),
                           name_of(one.split), printable(one.same_as), name_of(one.same_split));
  }
  if (shared.size() > max_shown) message += fmt::format(", and {} more", shared.size() - max_shown);
  return message;
}

// On rank 0: pictures shared by two splits are an error, or a remark if they are allowed. Pictures shared by two
// classes of a split are a remark.
void judge(std::vector<SharedPicture> shared, const PictureStorage& storage, PictureList& list) {
  const auto of_classes =
      std::ranges::stable_partition(shared, [](const SharedPicture& one) { return one.split != one.same_split; });
  const std::span of_splits(shared.begin(), of_classes.begin());
  if (!of_splits.empty()) {
    const std::string message = shared_pictures_message(of_splits, "splits");
    require(storage.allows(Oddity::duplicates), Failure::usage,
            "{}. A test on training pictures measures nothing. Remove the copies, or add --allow duplicates.", message);
    log::warning("{} (--allow duplicates).", message);
  }
  if (!of_classes.empty()) {
    log::warning("{}. One of the labels is wrong. Remove or skip those files.",
                 shared_pictures_message(of_classes, "classes"));
  }
  for (const SharedPicture& one : shared) {
    list.remarks.push_back(
        {one.name, false, fmt::format("has the same bytes as '{}' ({})", one.same_as, name_of(one.same_split))});
  }
}

}  // namespace

std::unique_ptr<SampleSource> open_pictures(const Communicator& world, const fs::path& folder,
                                            const PictureStorage& storage, std::uint64_t seed, const MetaMat& meta) {
  PictureList list = list_together(world, folder, storage, seed, meta);
  require_same_pictures(world, list);
  std::vector<SharedPicture> shared = shared_pictures(world, list);
  const bool keeps_copies_together = list.test_origin == drawn_test && !storage.allows(Oddity::duplicates);
  if (keeps_copies_together && !shared.empty() && keep_copies_together(world, list)) {
    if (world.rank() == 0) {
      log::info("copies are kept in one split:");
      print_summary(list);
    }
    shared = shared_pictures(world, list);
  }
  on_rank_0(world, [&] { judge(std::move(shared), storage, list); });
  auto source = std::make_unique<PictureSource>(std::move(list), storage);
  source->find_sample_bits(world);
  return source;
}

}  // namespace lockstep
