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
    SourceEntry{"cifar10", "CIFAR-10, binary version: data_batch_1.bin ... test_batch.bin", SourceNeeds::folder,
                from_folder<open_cifar10>},
    SourceEntry{"cifar100", "CIFAR-100, binary version: train.bin and test.bin", SourceNeeds::folder_and_labels,
                labelled_cifar100},
    SourceEntry{"mnist", "MNIST: IDX files, plain or .gz", SourceNeeds::folder, from_folder<open_mnist>},
    SourceEntry{"fashion_mnist", "Fashion-MNIST: IDX files, plain or .gz", SourceNeeds::folder,
                from_folder<open_fashion_mnist>},
    SourceEntry{"idx", "any other set of IDX files, like EMNIST's, plain or .gz: PREFIXtrain-images-idx3-ubyte ...",
                SourceNeeds::folder_and_idx_set, idx_set},
    SourceEntry{"images", "folders of JPEG or PNG pictures, one for each class; or train.list and test.list",
                SourceNeeds::pictures, listed},
    SourceEntry{"synthetic", "generated pictures, for use without real data", SourceNeeds::sample_count, drawn}};

}  // namespace

std::span<const SourceEntry> known_sources() { return sources; }

}  // namespace lockstep
