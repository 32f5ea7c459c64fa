#include "train/prediction/picture_preparation.hpp"

#include <gtest/gtest.h>

#include "picture/decode.hpp"
#include "picture/golden_pictures.hpp"
#include "picture/picture_fault.hpp"
#include "picture/png.hpp"
#include "picture/resize.hpp"
#include "support/memory_limit.hpp"
#include "support/messages.hpp"
#include "train/evaluation/model_fit.hpp"

namespace lockstep::test::picture_preparation_test {

ModelFile model_of(const SampleShape& shape) {
  ModelFile model;
  model.shape = shape;
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    model.mean.push_back(0.25F + 0.125F * static_cast<float>(c));
    model.deviation.push_back(0.5F);
  }
  return model;
}

std::vector<float> prepared(const SampleShape& shape, std::int64_t side, std::span<const std::byte> file) {
  std::vector<float> image(static_cast<std::size_t>(shape.height * shape.width * shape.channels));
  PicturePreparation(model_of(shape), side).write(file, image);
  return image;
}

// By the words of the page: the shorter side, then the middle, then (pixel / 255 - mean) / deviation.
TEST(PicturePreparationTest, the_middle_of_the_resized_picture_is_normalised) {
  const std::vector<std::byte> file = GoldenPictures().file("jpeg");
  const DecodedPicture decoded = decode_picture(file);
  const PictureSize whole = decoded.picture.size;
  for (const std::int64_t side : {16, 24}) {
    OwnedPicture smaller;
    resize(decoded.picture, {{0, 0, whole}, with_shorter_side(whole, side)}, smaller);
    const std::vector<float> image = prepared({16, 16, 3}, side, file);
    const std::int64_t top = (smaller.size.height - 16) / 2;
    const std::int64_t left = (smaller.size.width - 16) / 2;
    for (std::int64_t at = 0; at < 16 * 16 * 3; ++at) {
      const std::int64_t row = at / 48, column = at / 3 % 16, channel = at % 3;
      const std::uint8_t pixel =
          smaller.pixels[static_cast<std::size_t>(((top + row) * smaller.size.width + left + column) * 3 + channel)];
      const float mean = 0.25F + 0.125F * static_cast<float>(channel);
      ASSERT_NEAR(image[static_cast<std::size_t>(at)], (static_cast<float>(pixel) / 255 - mean) / 0.5F, 1e-6)
          << side << ": " << row << ", " << column << ", " << channel;
    }
  }
}

TEST(PicturePreparationTest, a_gray_picture_stays_what_it_is_for_a_model_of_one_channel) {
  const std::vector<std::byte> file = GoldenPictures().file("jpeg_gray");
  const DecodedPicture decoded = decode_picture(file);
  const PictureSize whole = decoded.picture.size;
  const std::int64_t side = std::min(whole.height, whole.width);
  const std::vector<float> gray = prepared({side, side, 1}, side, file);
  const std::vector<float> color = prepared({side, side, 3}, side, file);
  for (std::size_t pixel = 0; pixel < gray.size(); ++pixel) ASSERT_EQ(gray[pixel], color[3 * pixel]) << pixel;
}

// They were enlarged until the shorter side had the length of the image's longer one, and cropped.
TEST(PicturePreparationTest, a_picture_of_the_size_of_an_image_that_is_not_square_stays_as_it_is) {
  for (const PictureSize& size : {PictureSize{28, 44}, PictureSize{44, 28}}) {
    const SampleShape shape{size.height, size.width, 3};
    Manifest data;
    data.shape = shape;
    data.mean = model_of(shape).mean;
    data.deviation = model_of(shape).deviation;
    EXPECT_EQ(shorter_side_of(model_of(shape), data), 28);
    OwnedPicture picture;
    picture.size = size;
    for (std::int64_t at = 0; at < size.height * size.width * 3; ++at) {
      picture.pixels.push_back(static_cast<std::uint8_t>(at * 37 % 251));
    }
    const std::vector<std::uint8_t> file = encode_png(picture);
    const std::vector<float> image =
        prepared(shape, usual_shorter_side(model_of(shape)), std::as_bytes(std::span(file)));
    for (std::size_t at = 0; at < image.size(); ++at) {
      const float mean = 0.25F + 0.125F * static_cast<float>(at % 3);
      ASSERT_NEAR(image[at], (static_cast<float>(picture.pixels[at]) / 255 - mean) / 0.5F, 1e-6) << at;
    }
  }
}

TEST(PicturePreparationTest, a_picture_of_another_aspect_ratio_covers_the_image) {
  for (const PictureSize& size : {PictureSize{90, 30}, PictureSize{30, 90}, PictureSize{7, 7}}) {
    OwnedPicture white;
    white.size = size;
    white.pixels.assign(static_cast<std::size_t>(size.height * size.width * 3), 255);
    const std::vector<std::uint8_t> file = encode_png(white);
    const SampleShape shape{28, 44, 1};
    const std::vector<float> image =
        prepared(shape, usual_shorter_side(model_of(shape)), std::as_bytes(std::span(file)));
    for (const float value : image) ASSERT_NEAR(value, (1 - 0.25F) / 0.5F, 1e-6) << size.height;
  }
}

// The whole picture was resized before the crop, which took 12 GB.
TEST(PicturePreparationTest, a_thin_picture_takes_no_more_memory_than_others) {
  const auto image_of = [](const PictureSize& size) {
    OwnedPicture line{std::vector<std::uint8_t>(static_cast<std::size_t>(size.height * size.width * 3)), size};
    std::fill_n(line.pixels.begin(), line.pixels.size() / 2, std::uint8_t{255});
    const std::vector<std::uint8_t> file = encode_png(line);
    return prepared({224, 224, 3}, 256, std::as_bytes(std::span(file)));
  };
  const NoMemoryBeyond limit(rlim_t{256} << 20);
  EXPECT_EQ(image_of({1, 60'000}), image_of({1, 10}));
  EXPECT_EQ(image_of({60'000, 1}), image_of({10, 1}));
}

TEST(PicturePreparationTest, what_is_no_picture_is_a_fault) {
  EXPECT_THROW(prepared({16, 16, 3}, 16, std::as_bytes(std::span("no picture"))), PictureFault);
}

TEST(PicturePreparationTest, small_samples_are_seen_whole_and_larger_ones_cut_out_of_more_unless_data_say_otherwise) {
  EXPECT_EQ(usual_shorter_side(model_of({32, 32, 3})), 32);
  EXPECT_EQ(usual_shorter_side(model_of({64, 48, 3})), 48);
  EXPECT_EQ(usual_shorter_side(model_of({224, 224, 3})), 256);
  const auto side_of = [](SampleStore store, std::int64_t stored) {
    const ModelFile model = model_of({35, 35, 3});
    Manifest data;
    data.store = store;
    data.shape = {stored, stored, 3};
    data.mean = model.mean;
    data.deviation = model.deviation;
    return shorter_side_of(model, data);
  };
  EXPECT_EQ(side_of(SampleStore::images, 35), 35);
  EXPECT_EQ(side_of(SampleStore::pictures, 35), 35);
  EXPECT_EQ(side_of(SampleStore::jpeg, 35), 40);
  EXPECT_EQ(side_of(SampleStore::pictures, 64), 40);
}

TEST(PicturePreparationTest, pictures_are_resized_as_the_model_says_of_its_tests) {
  ModelFile model = model_of({35, 35, 3});
  Manifest data;
  data.store = SampleStore::jpeg;
  data.shape = model.shape;
  data.mean = model.mean;
  data.deviation = model.deviation;
  model.shorter_side = 50;
  EXPECT_EQ(usual_shorter_side(model), 50);
  EXPECT_EQ(shorter_side_of(model, data), 50);
  ImageOptions plan;
  plan.shorter_side = 60;
  EXPECT_EQ(rules_for(model, data, plan).shorter_side, 60);
  // Earlier versions trained models whose tests did not cover the image. They are still used as they were tested.
  model.shorter_side = 20;
  EXPECT_EQ(shorter_side_of(model, data), 20);
  EXPECT_NO_THROW(PicturePreparation(model, 20));
  // Tests took pictures as they were stored.
  model.shorter_side = 0;
  EXPECT_EQ(usual_shorter_side(model), 35);
  EXPECT_EQ(shorter_side_of(model, data), 40);
  data.store = SampleStore::images;
  EXPECT_EQ(shorter_side_of(model, data), 35);
}

TEST(PicturePreparationTest, a_size_that_cannot_be_is_refused) {
  expect_error(Failure::usage, {}, [] { PicturePreparation(model_of({32, 32, 2}), 32); });
}

}  // namespace lockstep::test::picture_preparation_test
