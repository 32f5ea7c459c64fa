// Reading a model file, which may come from anywhere: HDF5 says what the file claims, and nothing is believed that the
// file's own length cannot hold.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/file.hpp"
#include "base/hdf5_memory.hpp"
#include "train/model_file.hpp"

namespace lockstep {

namespace {

constexpr std::size_t limit_bytes = std::size_t{1} << 34;  // a model of four billion parameters
constexpr hsize_t limit_texts = 1 << 20;
constexpr std::size_t limit_text_bytes = 4096;
constexpr hsize_t limit_entries = 1 << 20;

class Reader {
 public:
  Reader(const std::filesystem::path& path, std::string& image)
      : path_(path.string()), bytes_(static_cast<hsize_t>(image.size())) {
    if (!looks_like_hdf5(std::as_bytes(std::span(image)))) damaged("it does not begin as an HDF5 file does");
    const Hid<H5Pclose> access = hdf5_in_memory();
    check_h5(H5Pset_file_image(access, image.data(), image.size()), "take a file into memory");
    // HDF5 asks for a name that no file has, although it reads the image only.
    file_ = Hid<H5Fclose>(H5Fopen((path_ + ".in-memory").c_str(), H5F_ACC_RDONLY, access));
    if (file_ < 0) damaged("HDF5 cannot open it: " + hdf5_words());
  }

  ModelFile read() {
    ModelFile model;
    const std::vector<std::int32_t> format = numbers<std::int32_t>("format", 1);
    if (format[0] != model_file_format) {
      throw Error(Failure::bad_data, fmt::format("model file '{}' has format {}, this program reads format {}. Was it "
                                                 "written by a newer version?",
                                                 path_, format[0], model_file_format));
    }
    model.model = texts("model")[0];
    model.classes = texts("classes");
    const std::vector<std::int64_t> shape = numbers<std::int64_t>("sample_shape", 3);
    if (std::ranges::any_of(shape, [](std::int64_t size) { return size < 1 || size > 65536; })) {
      damaged("its attribute 'sample_shape' holds an impossible size");
    }
    model.shape = {shape[0], shape[1], shape[2]};
    model.mean = numbers<float>("mean", static_cast<hsize_t>(model.shape.channels));
    model.deviation = numbers<float>("deviation", static_cast<hsize_t>(model.shape.channels));
    if (!std::ranges::all_of(model.mean, [](float mean) { return std::isfinite(mean); }) ||
        !std::ranges::all_of(model.deviation, [](float value) { return std::isfinite(value) && value > 0; })) {
      damaged("its attributes 'mean' and 'deviation' are not a normalisation");
    }
    read_entries(model);
    if (texts("hash")[0] != model_hash(model)) damaged("its hash does not match its content");
    return model;
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    throw Error(
        Failure::bad_data,
        fmt::format("model file '{}' is damaged or not a model file: {}. Train or copy it again?", path_, what));
  }

  Hid<H5Aclose> attribute(const char* name) const {
    if (H5Aexists(file_, name) <= 0) damaged(fmt::format("it has no attribute '{}'", name));
    return Hid<H5Aclose>(check_h5(H5Aopen(file_, name, H5P_DEFAULT), "open an attribute"));
  }

  // Elements of an attribute of at most one dimension; a single value counts one.
  hsize_t attribute_count(hid_t attribute, const char* name) const {
    const Hid<H5Sclose> space(check_h5(H5Aget_space(attribute), "read an attribute's shape"));
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    if (H5Sget_simple_extent_ndims(space) > 1 || count < 1 || static_cast<hsize_t>(count) > limit_texts) {
      damaged(fmt::format("its attribute '{}' has a wrong shape", name));
    }
    return static_cast<hsize_t>(count);
  }

  template <typename T>
  std::vector<T> numbers(const char* name, hsize_t count) const {
    const Hid<H5Aclose> handle = attribute(name);
    const Hid<H5Tclose> type(check_h5(H5Aget_type(handle), "read an attribute's type"));
    const H5T_class_t wanted = std::is_floating_point_v<T> ? H5T_FLOAT : H5T_INTEGER;
    if (H5Tget_class(type) != wanted || H5Tget_size(type) != sizeof(T) || attribute_count(handle, name) != count) {
      damaged(fmt::format("its attribute '{}' has a wrong type or shape", name));
    }
    std::vector<T> values(count);
    const hid_t memory = std::is_same_v<T, float>          ? H5T_NATIVE_FLOAT
                         : std::is_same_v<T, std::int32_t> ? H5T_NATIVE_INT32
                                                           : H5T_NATIVE_INT64;
    check_h5(H5Aread(handle, memory, values.data()), "read an attribute");
    return values;
  }

  std::vector<std::string> texts(const char* name) const {
    const Hid<H5Aclose> handle = attribute(name);
    const Hid<H5Tclose> type(check_h5(H5Aget_type(handle), "read an attribute's type"));
    const std::size_t cell = H5Tget_size(type);
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 || cell < 1 || cell > limit_text_bytes) {
      damaged(fmt::format("its attribute '{}' has a wrong type", name));
    }
    const hsize_t count = attribute_count(handle, name);
    if (count > bytes_ / cell) damaged(fmt::format("its attribute '{}' is longer than the file", name));
    std::string cells(count * cell, '\0');
    check_h5(H5Aread(handle, hdf5_text_type(cell), cells.data()), "read an attribute");
    std::vector<std::string> result;
    for (hsize_t index = 0; index < count; ++index) {
      const char* text = cells.data() + index * cell;
      result.emplace_back(text, strnlen(text, cell));
    }
    return result;
  }

  void read_entries(ModelFile& model) {
    H5G_info_t info;
    check_h5(H5Gget_info(file_, &info), "list the parameters");
    if (info.nlinks < 1 || info.nlinks > limit_entries) damaged(fmt::format("it holds {} parameters", info.nlinks));
    for (hsize_t index = 0; index < info.nlinks; ++index) model.entries.push_back(read_entry(index));
    std::ranges::sort(model.entries, {}, &ParameterStore::Entry::name);
  }

  // The name of link `index`. Only data sets of this file's own: a link may point anywhere on this machine.
  std::string entry_name(hsize_t index) const {
    std::array<char, limit_text_bytes> name{};
    const ssize_t length =
        H5Lget_name_by_idx(file_, ".", H5_INDEX_NAME, H5_ITER_INC, index, name.data(), name.size(), H5P_DEFAULT);
    if (length < 1 || static_cast<std::size_t>(length) >= name.size()) damaged("a parameter's name is too long");
    H5L_info_t link;
    check_h5(H5Lget_info(file_, name.data(), &link, H5P_DEFAULT), "look at a parameter");
    if (link.type != H5L_TYPE_HARD) damaged(fmt::format("'{}' is a link to elsewhere", name.data()));
    return name.data();
  }

  ParameterStore::Entry read_entry(hsize_t index) {
    ParameterStore::Entry entry{entry_name(index), {}, {}};
    const Hid<H5Oclose> object(check_h5(H5Oopen(file_, entry.name.c_str(), H5P_DEFAULT), "open a parameter"));
    if (H5Iget_type(object) != H5I_DATASET) damaged(fmt::format("'{}' is not a data set", entry.name));
    const Hid<H5Tclose> type(check_h5(H5Dget_type(object), "read a parameter's type"));
    if (H5Tequal(type, H5T_IEEE_F32LE) <= 0) damaged(fmt::format("'{}' is not 32-bit floating point", entry.name));
    const hsize_t count = read_dims(object, entry);
    check_storage(object, entry, count);
    entry.values.resize(count);
    check_h5(H5Dread(object, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, entry.values.data()), "read a parameter");
    return entry;
  }

  // Fills entry.dims; their product, which the file is long enough to hold.
  hsize_t read_dims(hid_t dataset, ParameterStore::Entry& entry) const {
    const Hid<H5Sclose> space(check_h5(H5Dget_space(dataset), "read a parameter's shape"));
    std::array<hsize_t, 4> dims{};
    const int ndim = H5Sget_simple_extent_ndims(space);
    if (ndim < 1 || ndim > static_cast<int>(dims.size())) {
      damaged(fmt::format("'{}' has {} dimensions", entry.name, ndim));
    }
    H5Sget_simple_extent_dims(space, dims.data(), nullptr);
    hsize_t count = 1;
    for (int axis = 0; axis < ndim; ++axis) {
      const hsize_t size = dims[static_cast<std::size_t>(axis)];
      if (size < 1 || size > bytes_ / sizeof(float) / count) {
        damaged(fmt::format("'{}' is larger than the file", entry.name));
      }
      count *= size;
      entry.dims.push_back(static_cast<std::int64_t>(size));
    }
    return count;
  }

  // In one piece, whole, and inside this file.
  void check_storage(hid_t dataset, const ParameterStore::Entry& entry, hsize_t count) const {
    const Hid<H5Pclose> creation(check_h5(H5Dget_create_plist(dataset), "read how a parameter is stored"));
    const bool inside = H5Pget_layout(creation) == H5D_CONTIGUOUS && H5Pget_external_count(creation) == 0;
    if (!inside || H5Dget_storage_size(dataset) != count * sizeof(float)) {
      damaged(fmt::format("'{}' is not stored whole in one piece", entry.name));
    }
    total_ += count * sizeof(float);
    if (total_ > bytes_) damaged("its parameters are larger than the file");
  }

  std::string path_;
  hsize_t bytes_;
  mutable hsize_t total_ = 0;  // bytes of parameters so far: two data sets may claim the same place
  Hid<H5Fclose> file_;
};

}  // namespace

ModelFile read_model_file(const std::filesystem::path& path) {
  silence_hdf5();
  std::string image = read_file(path, limit_bytes);
  return Reader(path, image).read();
}

bool looks_like_hdf5(std::span<const std::byte> bytes) {
  constexpr std::array<unsigned char, 8> signature = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  return bytes.size() >= signature.size() && std::memcmp(bytes.data(), signature.data(), signature.size()) == 0;
}

}  // namespace lockstep
