#include "dataset/sources/source_table.hpp"

#include <array>

#include "dataset/pictures/picture_source.hpp"

namespace lockstep {
namespace {

// Creates a source that reads a folder.
template <std::unique_ptr<SampleSource> (*open_folder)(const std::filesystem::path&)>
std::unique_ptr<SampleSource> from_folder(const SourceRequest& request) {
  return open_folder(request.folder);
}

std::unique_ptr<SampleSource> labelled_cifar100(const SourceRequest& request) {
  return open_cifar100(request.folder, request.labels);
}

std::unique_ptr<SampleSource> idx_set(const SourceRequest& request) {
  return open_idx_set(request.folder, request.idx);
}

std::unique_ptr<SampleSource> drawn(const SourceRequest& request) {
  return make_synthetic_source(request.samples, request.seed);
}

std::unique_ptr<SampleSource> listed(const SourceRequest& request) {
  return open_pictures(*request.world, request.folder, request.pictures, request.seed, request.meta_mat);
}

constexpr std::array sources = {
    SourceEntry{"cifar10", "Converts CIFAR-10, binary version (data_batch_1.bin ... test_batch.bin, or files in lists)",
                SourceNeeds::folder, from_folder<open_cifar10>},
    SourceEntry{"cifar100", "Converts CIFAR-100, binary version (train.bin, test.bin, or files in lists)",
                SourceNeeds::folder_and_labels, labelled_cifar100},
    SourceEntry{"mnist", "Converts MNIST (IDX files, plain or .gz)", SourceNeeds::folder, from_folder<open_mnist>},
    SourceEntry{"fashion_mnist", "Converts Fashion-MNIST (IDX files, plain or .gz)", SourceNeeds::folder,
                from_folder<open_fashion_mnist>},
    SourceEntry{"idx", "Converts other IDX files, such as EMNIST (PREFIXtrain-images-idx3-ubyte ..., plain or .gz)",
                SourceNeeds::folder_and_idx_set, idx_set},
    SourceEntry{"images", "Converts JPEG and PNG files: class folders, lists (train.list), or ImageNet's archives",
                SourceNeeds::pictures, listed},
    SourceEntry{"synthetic", "Draws synthetic pictures, for trials without a data set", SourceNeeds::sample_count,
                drawn}};

}  // namespace

std::span<const SourceEntry> known_sources() { return sources; }

}  // namespace lockstep
