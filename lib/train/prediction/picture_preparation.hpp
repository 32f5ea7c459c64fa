// From a file of a picture to what a network reads: as make_shards and an evaluation prepare samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataset/loading/normalizer.hpp"
#include "dataset/shards/manifest.hpp"
#include "files/model_file.hpp"
#include "picture/decode.hpp"

namespace lockstep {

// As the model says that its tests have it; pictures that they take as they are stored are seen whole. Where it does
// not say, samples up to 64 pixels are seen whole; larger ones are cut out of 8/7 of their side (224 of 256).
std::int64_t usual_shorter_side(const ModelFile& model);
// As a test of the model on `data` has it: that of the pictures as stored, where it does not resize them. Throws as
// rules_for().
std::int64_t shorter_side_of(const ModelFile& model, const Manifest& data);

class PicturePreparation {
 public:
  // `shorter_side`: of the picture, before its middle is cut out. `sample_bits`: see decode_picture(). Throws
  // Error(usage) if the model's samples are larger, or have neither one nor three channels.
  PicturePreparation(const ModelFile& model, std::int64_t shorter_side, const SampleBits& sample_bits = {});

  // image [h, w, c]. Throws PictureFault.
  void write(std::span<const std::byte> file, std::span<float> image) const;

 private:
  SampleShape shape_;
  std::int64_t shorter_side_;
  SampleBits sample_bits_;
  Normalizer normalizer_;
};

}  // namespace lockstep
