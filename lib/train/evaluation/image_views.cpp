#include "train/evaluation/image_views.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace lockstep {

// A shifted image shows reflected pixels.
ImageViews::ImageViews(TestTimeAugmentation augmentation, const PictureSize& image) : views_(views_of(augmentation)) {
  const bool shifts = augmentation == TestTimeAugmentation::flip_shift;
  require(!shifts || std::min(image.height, image.width) > 1, Failure::usage,
          "images of {} x {} pixels cannot be shifted by a pixel. Choose another --test-augment than {}.", image.height,
          image.width, test_augmentation_name(augmentation));
}

std::vector<ImageViews::View> ImageViews::views_of(TestTimeAugmentation augmentation) {
  switch (augmentation) {
    case TestTimeAugmentation::plain:
      break;
    case TestTimeAugmentation::flip:
      return {{0.5F}, {0.5F, true}};
    case TestTimeAugmentation::flip_shift:
      return {{0.25F}, {0.25F, true}, {0.125F, false, -1}, {0.125F, true, -1}, {0.125F, false, 1}, {0.125F, true, 1}};
  }
  return {{1}};
}

// The images themselves, or new ones.
Tensor ImageViews::shown(const View& view, Device& device, const Tensor& images) {
  Tensor shown = images;
  if (view.shift != 0) {
    const Tensor shifted = device.make(images.shape(), images.dtype(), Layout::images);
    device.ops().shift(view.shift, view.shift, shown, shifted);
    shown = shifted;
  }
  if (view.is_mirrored) {
    const Tensor mirrored = device.make(images.shape(), images.dtype(), Layout::images);
    device.ops().mirror(shown, mirrored);
    shown = mirrored;
  }
  return shown;
}

std::vector<Tensor> ImageViews::forward(Model& model, const Tensor& images) const {
  std::vector<Tensor> outputs;
  for (const View& view : views_) {
    outputs.push_back(model.network->forward(shown(view, model.store.device(), images), Mode::evaluate));
  }
  return outputs;
}

void ImageViews::read(Device& device, const std::vector<Tensor>& outputs, std::vector<float>& mean,
                      std::vector<float>& plain) {
  device.read(outputs.front(), plain);
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = views_.front().weight * plain[i];
  of_view_.resize(views_.size() == 1 ? 0 : plain.size());
  for (std::size_t view = 1; view < outputs.size(); ++view) {
    device.read(outputs[view], of_view_);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += views_[view].weight * of_view_[i];
  }
}

}  // namespace lockstep
