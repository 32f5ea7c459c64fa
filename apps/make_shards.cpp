// Converts published pictures into shards for training, and verifies shards.
//
//   make_shards cifar10 --source cifar-10-batches-bin --output cifar10     (faster under mpirun, with the same bytes)
//   make_shards images  --source my_pictures        --output mine --store raw --side 32
//   make_shards movielens --source ml-1m            --output ml-1m        (ratings, for train_recommendation)
//   make_shards verify cifar10
#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "base/log.hpp"
#include "base/text/choice.hpp"
#include "dataset/pictures/imagenet.hpp"
#include "dataset/pictures/sample_bits.hpp"
#include "dataset/shards/convert.hpp"
#include "dataset/shards/shard.hpp"
#include "dataset/shards/verify.hpp"
#include "dataset/sources/source_table.hpp"
#include "job/job_environment.hpp"
#include "launch/choice_option.hpp"
#include "launch/hang_timeout.hpp"
#include "launch/number_option.hpp"
#include "launch/run.hpp"
#include "picture/decode.hpp"
#include "recommendation/movielens.hpp"
#include "recommendation/rating_shards.hpp"
#include "runtime/failure/contained_failure.hpp"

using namespace lockstep;

namespace {

constexpr std::int64_t max_samples = std::int64_t{1} << 40;  // the limit of a manifest

struct MakeShardsOptions {
  const SourceEntry* source = nullptr;  // null: verify, or ratings
  bool converts_ratings = false;
  SourceRequest request{"", 50'000, 0};
  ConvertOptions convert;
  std::filesystem::path verified;
  VerifyOutput verify_output = VerifyOutput::summary;
  std::int64_t ratings_per_shard = 1'000'000;
  HangTimeout hang_timeout;

  void declare(CLI::App& app) {
    app.description("Converts image data sets into shards, and verifies shards.");
    app.require_subcommand(1);
    for (const SourceEntry& entry : known_sources()) declare_source(app, entry);
    declare_ratings(app);
    CLI::App* const verify = app.add_subcommand("verify", "Reads all shards and names the damaged ones");
    verify->add_option("DIR", verified, "Folder made by make_shards, or one of its splits")
        ->required()
        ->type_name("DIR");
    verify->add_flag_callback(
        "--root-hash", [this] { verify_output = VerifyOutput::root_hashes; },
        "Print only the root hash of each split, one per line; print nothing if a shard is damaged");
    hang_timeout.declare(*verify);
    app.footer(
        "Examples:\n  make_shards cifar10 --source cifar-10-batches-bin --output data/cifar10\n"
        "  make_shards images --source my_pictures --output data/mine\n"
        "  make_shards verify data/cifar10");
  }

  // ImageNet's meta.mat is read before MPI starts, in the process that becomes rank 0.
  void prepare(int argc, char** argv) {
    if (this_job().rank && this_job().rank->rank != 0) return;
    MakeShardsOptions early;
    CLI::App app;
    early.declare(app);
    try {
      app.parse(argc, argv);
    } catch (const CLI::Error&) {
      return;
    }
    if (early.source == nullptr || early.source->needs != SourceNeeds::pictures) return;
    const std::filesystem::path meta = meta_mat_in(early.request.folder);
    if (!meta.empty()) request.meta_mat = read_meta_mat_by_helper(meta);
  }

 private:
  void declare_source(CLI::App& app, const SourceEntry& entry) {
    CLI::App* const sub = app.add_subcommand(std::string(entry.name), std::string(entry.help));
    sub->callback([this, &entry] { source = &entry; });
    sub->option_defaults()->group("Input");
    if (entry.needs == SourceNeeds::pictures) {
      declare_picture_input(*sub);
    } else if (entry.needs == SourceNeeds::sample_count) {
      add_number(*sub, "--samples", request.samples, {1, max_samples},
                 "Number of training samples; the test split gets a fifth as many");
    } else {
      sub->add_option("--source", request.folder, "Folder with the published files")->required()->type_name("DIR");
    }
    if (entry.needs == SourceNeeds::folder_and_labels) {
      add_choice(*sub, "--labels", cifar100_labels, request.labels, "Labels to store. fine: 100 classes; coarse: 20");
    }
    if (entry.needs == SourceNeeds::folder_and_idx_set) declare_idx_set(*sub);
    sub->option_defaults()->group("Output");
    sub->add_option("--output", convert.output, "Folder for the splits train/, test/ and validation/")
        ->required()
        ->type_name("DIR");
    if (entry.needs == SourceNeeds::pictures) {
      declare_picture_output(*sub);
    } else {
      add_number(*sub, "--samples-per-shard", convert.samples_per_shard, {1, max_samples}, "Samples per shard");
    }
    add_number(*sub, "--validation", convert.validation, {0, max_samples},
               "Number of training samples to move to DIR/validation");
    add_number(*sub, "--seed", convert.seed, {0, std::numeric_limits<std::uint64_t>::max()},
               "Seed of random splits, of the order of pictures, and of synthetic samples");
    hang_timeout.declare(*sub);
  }

  void declare_ratings(CLI::App& app) {
    CLI::App* const sub = app.add_subcommand("movielens", "Converts MovieLens 1M or 100k, for train_recommendation");
    sub->callback([this] { converts_ratings = true; });
    sub->add_option("--source", request.folder,
                    "Folder with ratings.dat, users.dat and movies.dat, or u.data, u.user "
                    "and u.item")
        ->required()
        ->type_name("DIR");
    sub->add_option("--output", convert.output, "Folder for the shards")->required()->type_name("DIR");
    add_number(*sub, "--samples-per-shard", ratings_per_shard, {1, max_samples}, "Ratings per shard");
    add_number(*sub, "--seed", convert.seed, {0, std::numeric_limits<std::uint64_t>::max()},
               "Seed of the tenth of each user's ratings that is for the test");
    hang_timeout.declare(*sub);
  }

  void declare_idx_set(CLI::App& sub) {
    add_number(sub, "--classes", request.idx.classes, {1, max_idx_classes},
               "Number of classes (default: largest training label + 1)");
    sub.add_option("--prefix", request.idx.prefix,
                   "Start of the file names, such as emnist-letters, if the source folder has several sets")
        ->type_name("TEXT");
  }

  void declare_picture_input(CLI::App& sub) {
    PictureStorage& pictures = request.pictures;
    sub.add_option("--source", request.folder,
                   "Folder with train.list (test.list, val.list), ImageNet's archives, split folders (train/, test/, "
                   "val/), or class folders")
        ->required()
        ->type_name("DIR");
    sub.add_option("--skip", pictures.skipped, "File or folder to leave out, relative to --source; may be repeated")
        ->type_name("PATH")
        ->allow_extra_args(false);
    add_choices(sub, "--allow", oddities, pictures.allowed,
                "Comma-separated list of suspected mistakes in the data to accept")
        ->delimiter(',');
    sub.add_flag("--strict", pictures.is_strict, "Stop at the first file that is damaged or not a picture");
    sub.add_flag("--follow-links", pictures.follows_links, "Also read links that lead out of the source folder");
    add_number(sub, "--sample-bits", pictures.sample_bits, {least_sample_bits, max_sample_bits},
               "16-bit PNG files without an sBIT chunk: number of significant low bits");
  }

  void declare_picture_output(CLI::App& sub) {
    PictureStorage& pictures = request.pictures;
    sub.add_option_function<std::string>(
           "--store",
           [&pictures](const std::string& name) {
             const auto* const choice = find_choice(stores, name);
             if (choice == nullptr) throw CLI::ValidationError("--store", unknown_choice_message(stores, name));
             pictures.store = choice->value;
           },
           "jpeg: store JPEG files unchanged if possible; raw: store decoded pixels, which load faster")
        ->type_name("NAME")
        ->default_str("jpeg");
    add_number(sub, "--side", pictures.side, {8, 4096},
               "With --store raw: shorter side of the stored pictures, in pixels");
    add_number(sub, "--max-side", pictures.longest_side, {0, max_picture_side},
               "With --store jpeg: shrink pictures whose longer side exceeds this many pixels; 0: none");
    add_number(sub, "--quality", pictures.quality, {1, 100}, "JPEG quality of pictures that are encoded again");
    add_number(sub, "--shard-megabytes", shard_megabytes_, {1, 2048}, "Approximate size of a shard, in MiB");
    sub.parse_complete_callback([this, &sub] {
      convert.bytes_per_shard = shard_megabytes_ << 20;
      refuse_unread(sub, {"--side"}, SampleStore::pictures);
      refuse_unread(sub, {"--max-side", "--quality"}, SampleStore::jpeg);
    });
  }

  // Options that only `store` uses, so that no user relies on one without effect.
  void refuse_unread(const CLI::App& sub, std::initializer_list<const char*> options, SampleStore store) const {
    const SampleStore chosen = request.pictures.store;
    for (const char* option : options) {
      if (chosen == store || sub.count(option) == 0) continue;
      throw CLI::ValidationError(option, fmt::format("it has no effect with --store {}, only with {}. Leave it out",
                                                     choice_name(stores, chosen), choice_name(stores, store)));
    }
  }

  static constexpr std::array<Choice<SampleStore>, 2> stores{
      {{"jpeg", SampleStore::jpeg}, {"raw", SampleStore::pictures}}};
  std::int64_t shard_megabytes_ = 256;
};

// The next run would read files written there as pictures.
void require_outside(const std::filesystem::path& source, const std::filesystem::path& output) {
  const std::filesystem::path way =
      std::filesystem::weakly_canonical(output).lexically_relative(std::filesystem::weakly_canonical(source));
  require(way.empty() || *way.begin() == "..", Failure::usage,
          "'{}' is inside --source '{}'. The next run would read it as images. Choose another --output.",
          output.string(), source.string());
}

void convert_ratings(const Communicator& world, const MakeShardsOptions& options) {
  on_rank_0(world, [&] {
    const RatingData data = read_movielens(options.request.folder, options.convert.seed);
    write_rating_shards(options.convert.output, data, options.ratings_per_shard);
    log::info("wrote {} ratings for training and {} for the test to '{}'", data.train.size(), data.test.size(),
              options.convert.output.string());
  });
}

void verify_ratings(const Communicator& world, const std::filesystem::path& folder) {
  on_rank_0(world, [&] {
    const RatingData data = read_rating_shards(folder);
    log::info("'{}': {} ratings for training and {} for the test are intact", folder.string(), data.train.size(),
              data.test.size());
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && argv[1] == std::string_view(meta_mat_command)) return print_meta_mat(argv[2]);
  return run<MakeShardsOptions>(argc, argv, [](Session& session, const MakeShardsOptions& options) {
    if (options.converts_ratings) return convert_ratings(session.world, options);
    const bool has_ratings = options.source == nullptr && has_rating_shards(options.verified);
    if (has_ratings) return verify_ratings(session.world, options.verified);
    if (options.source == nullptr) return verify(session.world, options.verified, options.verify_output);
    SourceRequest request = options.request;
    request.seed = options.convert.seed;
    request.world = &session.world;
    if (options.source->needs == SourceNeeds::pictures) require_outside(request.folder, options.convert.output);
    convert(session.world, *options.source->make(request), options.convert);
  });
}
