// Prints the logits that a model gives for pictures, a line for each: print_logits MODEL SIDE PICTURES...
//
// Pictures are prepared as a test has them, SIDE being what their shorter side becomes.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "device/cpu/cpu_device.hpp"
#include "step/model.hpp"
#include "train/prediction/picture_preparation.hpp"
#include "train/pretrained/pretrained_model.hpp"

using namespace lockstep;

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const ModelFile file = read_pretrained_model(argv[1], "", std::vector<std::string>());
  const PicturePreparation preparation(file, std::atoll(argv[2]));
  const std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = 1});
  Model model(*device, {file.model, file.shape, static_cast<std::int64_t>(file.classes.size())});
  model.store.allocate(device->make_persistent(model.store.gradient_buffer_count(), DType::f32));
  model.store.assign(file.entries);
  const Shape shape{1, file.shape.height, file.shape.width, file.shape.channels};
  std::vector<float> image(static_cast<std::size_t>(shape.count()));
  std::vector<float> logits(file.classes.size());
  for (const char* const picture : std::span(argv, static_cast<std::size_t>(argc)).subspan(3)) {
    const std::string bytes = read_file(picture, std::size_t{1} << 28);
    preparation.write(std::as_bytes(std::span(bytes)), image);
    const Tensor x = device->make(shape, device->image_dtype(), Layout::images);
    device->write(image, x);
    device->read(model.network->forward(x, Mode::evaluate), logits);
    fmt::print("{:.9g}\n", fmt::join(logits, " "));
  }
}
