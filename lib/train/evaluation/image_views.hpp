// The views of an image whose logits are averaged with test-time augmentation.
#pragma once

#include <cstdint>
#include <vector>

#include "picture/picture.hpp"
#include "recipe/test_augmentation.hpp"
#include "step/model.hpp"

namespace lockstep {

class ImageViews {
 public:
  // Throws Error(usage) if images of one pixel are to be shifted.
  ImageViews(TestTimeAugmentation augmentation, const PictureSize& image);

  // The outputs for each view, and first those for the images as they are. Stream-ordered.
  std::vector<Tensor> forward(Model& model, const Tensor& images) const;
  // Blocking. The weighted mean of their logits, and those of the first view.
  void read(Device& device, const std::vector<Tensor>& outputs, std::vector<float>& mean, std::vector<float>& plain);

 private:
  struct View {
    float weight;  // of its logits in the mean
    bool is_mirrored = false;
    std::int64_t shift = 0;  // in rows and in columns
  };
  static std::vector<View> views_of(TestTimeAugmentation augmentation);
  static Tensor shown(const View& view, Device& device, const Tensor& images);

  std::vector<View> views_;
  std::vector<float> of_view_;  // logits of another view than the first
};

}  // namespace lockstep
