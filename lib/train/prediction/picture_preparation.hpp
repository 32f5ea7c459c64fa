// From a file of a picture to what a network reads: as make_shards and an evaluation prepare samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataset/loading/normalizer.hpp"
#include "files/model_file.hpp"

namespace lockstep {

class PicturePreparation {
 public:
  // `shorter_side`: of the picture, before its middle is cut out; 0: that of the model's samples. Throws Error(usage)
  // if the model's samples are larger, or have neither one nor three channels.
  PicturePreparation(const ModelFile& model, std::int64_t shorter_side);

  // image [h, w, c]. Throws PictureFault.
  void write(std::span<const std::byte> file, std::span<float> image) const;

 private:
  SampleShape shape_;
  std::int64_t shorter_side_;
  Normalizer normalizer_;
};

}  // namespace lockstep
