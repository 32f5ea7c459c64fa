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
  std::string command;
  std::filesystem::path source;
  std::int64_t samples = 50'000;
  ConvertOptions convert;
  std::filesystem::path verified;

  void declare(CLI::App& app) {
    app.description("Turns pictures as they are published into shards, and checks shards again.");
    app.require_subcommand(1);
    declare_source(app, "cifar10", "CIFAR-10, binary version: data_batch_1.bin ... test_batch.bin");
    declare_source(app, "cifar100", "CIFAR-100, binary version: train.bin and test.bin, fine labels");
    declare_source(app, "mnist", "MNIST: IDX files, plain or .gz");
    declare_source(app, "fashion_mnist", "Fashion-MNIST: IDX files, plain or .gz");
    declare_source(app, "synthetic", "a procedural stand-in where there are no real pictures");
    CLI::App* const verify = app.add_subcommand("verify", "Reads all shards again and names the damaged ones");
    verify->add_option("DIR", verified, "A data set, or a folder with train/ and test/")->required();
    verify->callback([this] { command = "verify"; });
  }

 private:
  void declare_source(CLI::App& app, const std::string& name, const std::string& about) {
    CLI::App* const sub = app.add_subcommand(name, "Writes DIR/train, DIR/test: " + about);
    sub->callback([this, name] { command = name; });
    if (name == "synthetic") {
      add_number(*sub, "--samples", samples, {1, most_samples}, "Training samples; a fifth as many for the test");
    } else {
      sub->add_option("--source", source, "Folder with the published files")->required()->type_name("DIR");
    }
    sub->add_option("--output", convert.output, "Folder to write to")->required()->type_name("DIR");
    add_number(*sub, "--samples-per-shard", convert.samples_per_shard, {1, most_samples}, "Samples in a shard");
    add_number(*sub, "--validation", convert.validation, {0, most_samples},
               "Training samples to split off into DIR/validation");
    add_number(*sub, "--seed", convert.seed, {0, std::numeric_limits<std::uint64_t>::max()},
               "Chooses the validation samples; draws the synthetic ones");
  }
};

std::unique_ptr<SampleSource> open_source(const MakeShardsOptions& options) {
  if (options.command == "cifar10") return open_cifar10(options.source);
  if (options.command == "cifar100") return open_cifar100(options.source);
  if (options.command == "mnist") return open_mnist(options.source);
  if (options.command == "fashion_mnist") return open_fashion_mnist(options.source);
  return make_synthetic_source(options.samples, options.convert.seed);
}

}  // namespace

int main(int argc, char** argv) {
  return run<MakeShardsOptions>(argc, argv, [](Session& session, const MakeShardsOptions& options) {
    if (options.command == "verify") return verify(session.world, options.verified);
    convert(session.world, *open_source(options), options.convert);
  });
}
