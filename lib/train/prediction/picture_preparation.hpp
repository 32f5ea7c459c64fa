// Converts a picture file to a network's input, with the same preparation as make_shards and an evaluation.
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

// The shorter side for resizing before the center crop, as in the model's own tests. If they use pictures as stored,
// no margin is cropped. If the model does not state it: no margin for inputs up to 64 pixels, otherwise 8/7 of the
// input's side (256 for 224).
std::int64_t usual_shorter_side(const ModelFile& model);
// The shorter side in a test of the model on `data`; if that does not resize, the shorter side of the stored pictures.
// Throws as rules_for().
std::int64_t shorter_side_of(const ModelFile& model, const Manifest& data);

class PicturePreparation {
 public:
  // `shorter_side` is that of the input with its margin, which the resized picture covers before the center crop.
  // `sample_bits`: see decode_picture(). Throws Error(usage) if the model's input has neither one nor three channels.
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
