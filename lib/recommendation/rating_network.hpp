// The network of PaddlePaddle's demo "recommendation" (2016), which predicts how a user rates a movie:
//
//   user id, gender, age, occupation: each embedding -> fc              joined -> fc = user vector
//   movie id: embedding -> fc
//   title: embeddings of characters -> fc over windows of five -> mean
//   genres: 0 or 1 each -> fc -> fc                                     joined with the two above -> fc = movie vector
//
//   score = 5 * cosine(user vector, movie vector)
//
// Every fc is tanh(weight * x + bias), and all embeddings, fc and vectors have the same width (the demo: 256).
// Characters before and after a title are zeros.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "embedding/embedding_tables.hpp"
#include "nn/elementwise.hpp"
#include "nn/linear.hpp"
#include "recommendation/rating_data.hpp"

namespace lockstep {

// Rows are read and gradients written through pointers to tensors, so the device is a CPU.
class RatingNetwork {
 public:
  // The embedding tables of such a network.
  static std::vector<TableShape> table_shapes(const Catalogue& catalogue, std::int64_t width);
  // The largest number of gradients that one sample adds to a row.
  static std::int64_t terms_per_sample(const Catalogue& catalogue);

  // `tables` have the table_shapes(). All arguments outlive this. Afterwards, allocate and initialize
  // dense_parameters(), and call draw_embeddings().
  RatingNetwork(Device& device, const Catalogue& catalogue, std::int64_t width, EmbeddingTables& tables);

  ParameterStore& dense_parameters() { return store_; }
  const ParameterStore& dense_parameters() const { return store_; }
  // Normal values with standard deviation 1 / sqrt(width), a function of seed, table and element.
  void draw_embeddings(std::uint64_t seed);

  // Collective. Prefetches the rows of these samples, which may be none (EmbeddingTables::prefetch()).
  void prefetch(std::span<const Rating> samples) { tables_.prefetch(rows_of(samples)); }
  // Scores of the micro-batch, one or more samples that were prefetched. Throws as EmbeddingTables::fetch().
  std::vector<float> forward(std::span<const Rating> samples, Mode mode);
  // After forward() under Mode::train. Adds the gradients of embeddings to `sums`, one for each table.
  void backward(std::span<const float> d_scores, GradientSink& sink, std::span<RowSums> sums);

 private:
  // tanh(weight * x + bias)
  struct FullyConnected {
    FullyConnected(const LayerContext& layers, const std::string& name, std::int64_t in, std::int64_t out);
    Tensor forward(const Tensor& x, Mode mode);
    Tensor backward(const Tensor& dy, GradientSink& sink);

    Linear linear;
    Activate activate;
  };
  // An embedding and its fc.
  struct Feature {
    std::size_t table;
    FullyConnected fc;

    Feature(const LayerContext& context, std::size_t of_table, const std::string& name, std::int64_t width)
        : table(of_table), fc(context, name, width, width) {}
  };

  RowLists rows_of(std::span<const Rating> samples) const;
  Tensor make(std::int64_t rows, std::int64_t columns);
  Tensor join(std::span<const Tensor> parts);
  std::vector<Tensor> divide(const Tensor& joined);
  Tensor forward(Feature& feature, Mode mode);
  void backward(Feature& feature, const Tensor& dy, GradientSink& sink, std::span<RowSums> sums);
  Tensor title_forward(std::span<const Rating> samples, Mode mode);
  void title_backward(const Tensor& dy, GradientSink& sink, RowSums& sums);
  Tensor genres_of(std::span<const Rating> samples);

  Device& device_;
  const Catalogue& catalogue_;
  std::int64_t width_;
  EmbeddingTables& tables_;
  ParameterStore store_;
  StatisticsShare no_statistics_;
  // In the order of forward.
  std::deque<Feature> user_features_;
  std::unique_ptr<FullyConnected> user_fusion_;
  std::unique_ptr<Feature> movie_id_;
  std::unique_ptr<FullyConnected> title_;
  std::unique_ptr<FullyConnected> genres_;
  std::unique_ptr<FullyConnected> genres_again_;
  std::unique_ptr<FullyConnected> movie_fusion_;
  // Of the micro-batch, for backward:
  RowLists rows_;                          // of each table; of titles, their characters, one after another
  std::vector<std::int64_t> title_sizes_;  // [samples]
  Tensor user_vectors_;
  Tensor movie_vectors_;
};

}  // namespace lockstep
