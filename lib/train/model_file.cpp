#include "train/model_file.hpp"

#include <xxhash.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/hdf5_memory.hpp"

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

template <typename T>
void write_numbers(hid_t root, const char* name, hid_t type, const std::vector<T>& values) {
  const hsize_t count = values.size();
  const Hid<H5Sclose> space(check_h5(H5Screate_simple(1, &count, nullptr), "describe an attribute"));
  const Hid<H5Aclose> attribute(
      check_h5(H5Acreate2(root, name, type, space, H5P_DEFAULT, H5P_DEFAULT), "create an attribute"));
  check_h5(H5Awrite(attribute, type, values.data()), "write an attribute");
}

void write_text(hid_t root, const char* name, const std::string& text) {
  hdf5_write_texts(root, name, std::span(&text, 1));
}

}  // namespace

std::string model_hash(const ModelFile& model) {
  // JSON for the small fields: every one delimited, so that no two models look alike.
  nlohmann::json fields = {
      {"format", model_file_format}, {"model", model.model},
      {"classes", model.classes},    {"sample_shape", {model.shape.height, model.shape.width, model.shape.channels}},
      {"mean", model.mean},          {"deviation", model.deviation}};
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (const ParameterStore::Entry& entry : model.entries) {
    fields["entries"].push_back(nlohmann::json::array({entry.name, entry.dims}));
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
  const Hid<H5Pclose> access = hdf5_in_memory();
  const Hid<H5Fclose> file(
      check_h5(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), "create a model file in memory"));
  const std::vector<std::int64_t> shape = {model.shape.height, model.shape.width, model.shape.channels};
  hdf5_write_number(file, "format", model_file_format);
  write_text(file, "model", model.model);
  hdf5_write_texts(file, "classes", model.classes);
  write_numbers(file, "sample_shape", H5T_STD_I64LE, shape);
  write_numbers(file, "mean", H5T_IEEE_F32LE, model.mean);
  write_numbers(file, "deviation", H5T_IEEE_F32LE, model.deviation);
  for (const ParameterStore::Entry& entry : model.entries) write_dataset(file, entry);
  write_text(file, "hash", model_hash(model));
  write_file_atomically(path, hdf5_image(file));
}

}  // namespace lockstep
