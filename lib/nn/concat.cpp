#include "nn/concat.hpp"

namespace lockstep {

NormedMap Concat::forward(std::span<const NormedMap> x, Mode) {
  const Shape& shape = x[0].x.shape();
  std::int64_t channels = 0;
  channels_.clear();
  for (const NormedMap& one : x) {
    maps_.push_back(one.x);
    channels_.push_back(one.x.shape()[3]);
    channels += channels_.back();
  }
  const Tensor y = device_.make({shape[0], shape[1], shape[2], channels}, maps_.front().dtype(), Layout::features);
  device_.ops().concat_forward(maps_, y);
  maps_.clear();
  return {y};
}

void Concat::backward(const Tensor& dy, std::span<InputGradient> dx, GradientSink&) {
  const Shape& shape = dy.shape();
  for (std::size_t i = 0; i < dx.size(); ++i) {
    dx[i].result = device_.make({shape[0], shape[1], shape[2], channels_[i]}, dy.dtype(), Layout::features);
    maps_.push_back(dx[i].result);
  }
  device_.ops().concat_backward(dy, maps_);
  maps_.clear();
}

}  // namespace lockstep
