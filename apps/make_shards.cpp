// Turns pictures as they are published into shards that training reads, and checks shards again.
//
//   make_shards cifar10 --source cifar-10-batches-bin --output cifar10     (also under mpirun: the same bytes, sooner)
//   make_shards verify cifar10
#include <limits>

#include "dataset/shards/convert.hpp"
#include "dataset/shards/verify.hpp"
#include "launch/number_option.hpp"
#include "launch/run.hpp"

using namespace lockstep;

namespace {

constexpr std::int64_t most_samples = std::int64_t{1} << 40;  // as a manifest holds

struct MakeShardsOptions {
  const SourceEntry* source = nullptr;  // none: verify
  SourceRequest request{"", 50'000, 0};
  ConvertOptions convert;
  std::filesystem::path verified;

  void declare(CLI::App& app) {
    app.description("Turns pictures as they are published into shards, and checks shards again.");
    app.require_subcommand(1);
    for (const SourceEntry& entry : known_sources()) declare_source(app, entry);
    CLI::App* const verify = app.add_subcommand("verify", "Reads all shards again and names the damaged ones");
    verify->add_option("DIR", verified, "A data set, or a folder with train/ and test/")->required();
  }

 private:
  void declare_source(CLI::App& app, const SourceEntry& entry) {
    CLI::App* const sub =
        app.add_subcommand(std::string(entry.name), "Writes DIR/train, DIR/test: " + std::string(entry.help));
    sub->callback([this, &entry] { source = &entry; });
    if (entry.needs == SourceNeeds::sample_count) {
      add_number(*sub, "--samples", request.samples, {1, most_samples},
                 "Training samples; a fifth as many for the test");
    } else {
      sub->add_option("--source", request.folder, "Folder with the published files")->required()->type_name("DIR");
    }
    sub->add_option("--output", convert.output, "Folder to write to")->required()->type_name("DIR");
    add_number(*sub, "--samples-per-shard", convert.samples_per_shard, {1, most_samples}, "Samples in a shard");
    add_number(*sub, "--validation", convert.validation, {0, most_samples},
               "Training samples to split off into DIR/validation");
    add_number(*sub, "--seed", convert.seed, {0, std::numeric_limits<std::uint64_t>::max()},
               "Chooses the validation samples; draws the synthetic ones");
  }
};

}  // namespace

int main(int argc, char** argv) {
  return run<MakeShardsOptions>(argc, argv, [](Session& session, const MakeShardsOptions& options) {
    if (options.source == nullptr) return verify(session.world, options.verified);
    SourceRequest request = options.request;
    request.seed = options.convert.seed;
    convert(session.world, *options.source->make(request), options.convert);
  });
}
