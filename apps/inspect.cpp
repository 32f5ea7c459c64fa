// Says in words what a file of Lockstep holds: a shard, a manifest, a model or a checkpoint; or another program's
// weights.
//
//   inspect runs/cifar10/model.h5
#include "base/log.hpp"
#include "launch/run.hpp"
#include "train/inspection.hpp"

using namespace lockstep;

namespace {

struct InspectOptions {
  std::filesystem::path file;

  void declare(CLI::App& app) {
    app.description("Says what a shard, a manifest, a model file, a checkpoint or the folder of a training holds.");
    app.add_option("FILE", file,
                   "A shard (.h5), manifest.json, a data set's folder, a model file or a checkpoint (.h5), a "
                   "training's folder, "
                   "or weights that another program wrote (safetensors, HDF5)")
        ->required();
  }
};

}  // namespace

int main(int argc, char** argv) {
  return run<InspectOptions>(argc, argv,
                             [](Session&, const InspectOptions& options) { log::plain(describe_file(options.file)); });
}
