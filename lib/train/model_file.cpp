#include "train/model_file.hpp"

#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/hdf5.hpp"
#include "train/model_file_format.hpp"

namespace lockstep {

namespace {

void write_dataset(hid_t root, const ParameterStore::Entry& entry) {
  const std::vector<hsize_t> dims(entry.dims.begin(), entry.dims.end());
  const Hid<H5Sclose> space(
      check_h5(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), "describe a parameter's shape"));
  const Hid<H5Dclose> dataset(
      check_h5(H5Dcreate2(root, entry.name.c_str(), H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
               "create a parameter's dataset"));
  check_h5(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, entry.values.data()),
           "write a parameter's values");
}

// `count` elements, or a single value where it is `scalar`.
constexpr hsize_t scalar = 0;
void write_attribute(hid_t root, const char* name, hid_t file_type, hid_t memory_type, hsize_t count,
                     const void* values) {
  const Hid<H5Sclose> space(check_h5(count == scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, nullptr),
                                     "describe an attribute"));
  const Hid<H5Aclose> attribute(
      check_h5(H5Acreate2(root, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT), "create an attribute"));
  check_h5(H5Awrite(attribute, memory_type, values), "write an attribute");
}

void write_text(hid_t root, const char* name, const std::string& text) {
  const Hid<H5Tclose> type = model_file::text_type(text.size());
  write_attribute(root, name, type, type, scalar, text.c_str());
}

// Texts of one length, the longest's: no variable-length types in our files.
void write_texts(hid_t root, const char* name, const std::vector<std::string>& texts) {
  std::size_t longest = 1;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  std::string cells;
  for (const std::string& text : texts) cells += text + std::string(longest - text.size(), '\0');
  const Hid<H5Tclose> type = model_file::text_type(longest);
  write_attribute(root, name, type, type, texts.size(), cells.data());
}

// The bytes of the file that HDF5 would have written.
std::string file_image(hid_t file) {
  check_h5(H5Fflush(file, H5F_SCOPE_GLOBAL), "finish a model file in memory");
  const ssize_t bytes = check_h5(H5Fget_file_image(file, nullptr, 0), "measure a model file in memory");
  std::string image(static_cast<std::size_t>(bytes), '\0');
  check_h5(H5Fget_file_image(file, image.data(), image.size()), "copy a model file in memory");
  return image;
}

}  // namespace

std::string model_hash(const ModelFile& model) {
  // JSON for the small fields: every one delimited, so that no two models look alike.
  nlohmann::json fields = {
      {"format", model_file::format}, {"model", model.model},
      {"classes", model.classes},     {"sample_shape", {model.shape.height, model.shape.width, model.shape.channels}},
      {"mean", model.mean},           {"deviation", model.deviation}};
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (const ParameterStore::Entry& entry : model.entries) {
    fields["entries"].push_back({entry.name, entry.dims});
    XXH3_128bits_update(state.get(), entry.values.data(), entry.values.size() * sizeof(float));
  }
  // A name that is not UTF-8 is replaced, not thrown at: this also runs on files of unknown origin.
  const std::string text = fields.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  XXH3_128bits_update(state.get(), text.data(), text.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

void write_model_file(const std::filesystem::path& path, const ModelFile& model) {
  silence_hdf5();
  const Hid<H5Pclose> access = model_file::memory_access();
  const Hid<H5Fclose> file(
      check_h5(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), "create a model file in memory"));
  write_attribute(file, "format", H5T_STD_I32LE, H5T_NATIVE_INT32, scalar, &model_file::format);
  write_text(file, "model", model.model);
  write_texts(file, "classes", model.classes);
  const std::int64_t shape[] = {model.shape.height, model.shape.width, model.shape.channels};
  write_attribute(file, "sample_shape", H5T_STD_I64LE, H5T_NATIVE_INT64, 3, shape);
  write_attribute(file, "mean", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, model.mean.size(), model.mean.data());
  write_attribute(file, "deviation", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, model.deviation.size(), model.deviation.data());
  for (const ParameterStore::Entry& entry : model.entries) write_dataset(file, entry);
  write_text(file, "hash", model_hash(model));
  write_file_atomically(path, file_image(file));
}

}  // namespace lockstep
