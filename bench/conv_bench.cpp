// The convolutions of a training step, layer by layer: effective GFLOP/s of the kernels chosen on this machine, and the
// samples a second that a step of nothing else would reach.
//
//   conv_bench --model resnet18 --image-size 32 --batch 64 --threads 2 --precision bf16 --verbose
#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"
#include "convolution_bound.hpp"

using namespace lockstep;

namespace {

struct ConvBenchOptions {
  std::string model = "resnet18";
  std::int64_t image_size = 32;
  std::int64_t batch = 64;
  DeviceOptions device;

  void declare(CLI::App& app) {
    app.add_option("--model", model, "resnet18, resnet20 or resnet50")->capture_default_str();
    app.add_option("--image-size", image_size, "pixels")->capture_default_str()->check(CLI::Range(8, 1024));
    app.add_option("--batch", batch, "samples")->capture_default_str()->check(CLI::Range(1, 65536));
    app.add_option("--threads", device.threads, "0: all cores that this process may use")->capture_default_str();
    app.add_option("--precision", device.precision, "of activations")
        ->transform(CLI::CheckedTransformer(std::map<std::string, DType>{{"fp32", DType::f32}, {"bf16", DType::bf16}}));
    app.add_flag("--verbose", device.verbose, "print the kernel chosen for each layer and direction");
  }
};

void print_layers(Device& device, const ConvBenchOptions& options) {
  const std::vector<ConvLayer> layers = convolutions_of(options.model, options.image_size);
  log::plain(fmt::format("{}, {} {}, batch {}\n{:>24} {:>6}  GFLOP/s: forward, backward-data, backward-weight",
                         device.description(), options.model, options.image_size, options.batch, "layer", "times"));
  double seconds = 0;
  for (const ConvLayer& layer : layers) {
    const auto& [in, out, kernel, stride, padding] = layer.conv;
    const std::int64_t out_size = layer.conv.out_size(layer.size);
    const double gflop = 2e-9 * static_cast<double>(options.batch * out_size * out_size * in * out * kernel * kernel);
    const ConvSeconds measured = measure(device, layer, options.batch);
    const auto rate = [&](double value) { return value > 0 ? gflop / value : 0.0; };
    log::plain(fmt::format("{:>4}->{:<4} {}x{} /{} on {:>3} {:>6}  {:7.0f} {:7.0f} {:7.0f}", in, out, kernel, kernel,
                           stride, layer.size, layer.times, rate(measured.forward), rate(measured.backward_data),
                           rate(measured.backward_weight)));
    seconds += layer.times * measured.sum();
  }
  log::plain(fmt::format("convolutions only: {:.1f} samples/s", static_cast<double>(options.batch) / seconds));
}

}  // namespace

int main(int argc, char** argv) {
  ConvBenchOptions options;
  CLI::App app("Measures the convolutions of a training step.");
  options.declare(app);
  CLI11_PARSE(app, argc, argv);
  try {
    print_layers(*open_device(options.device), options);
  } catch (const Error& error) {
    log::error(error.what());
    return error.exit_code();
  }
  return 0;
}
