// One file of golden values; make_golden.py in tests/golden describes them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/io/hdf5.hpp"

namespace lockstep::test {

// The environment names the folder where the sources lie elsewhere than where this was built (tests/gpu.sh).
inline std::string golden_path(const std::string& name) {
  const char* const folder = std::getenv("LOCKSTEP_GOLDEN_DIR");
  return std::string(folder != nullptr ? folder : LOCKSTEP_GOLDEN_DIR) + "/" + name + ".h5";
}

class GoldenFile {
 public:
  explicit GoldenFile(const std::string& path)
      : file_(check_h5(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "open golden values")) {}

  double attribute(const std::string& name) const {
    const Hid<H5Aclose> attribute(check_h5(H5Aopen(file_, name.c_str(), H5P_DEFAULT), "open " + name));
    double value = 0.0;
    check_h5(H5Aread(attribute, H5T_NATIVE_DOUBLE, &value), "read " + name);
    return value;
  }

  // All elements in row-major order, converted from what is stored.
  std::vector<double> values(const std::string& path) const {
    const Hid<H5Dclose> dataset = open(path);
    std::vector<double> values(static_cast<std::size_t>(count(dims(path))));
    check_h5(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "read " + path);
    return values;
  }

  std::vector<std::int64_t> dims(const std::string& path) const {
    const Hid<H5Dclose> dataset = open(path);
    const Hid<H5Sclose> space(check_h5(H5Dget_space(dataset), "read the shape of " + path));
    std::vector<hsize_t> dims(static_cast<std::size_t>(check_h5(H5Sget_simple_extent_ndims(space), "count dims")));
    check_h5(H5Sget_simple_extent_dims(space, dims.data(), nullptr), "read dims");
    return {dims.begin(), dims.end()};
  }

 private:
  static std::int64_t count(const std::vector<std::int64_t>& dims) {
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    return count;
  }

  Hid<H5Dclose> open(const std::string& path) const {
    return Hid<H5Dclose>(check_h5(H5Dopen2(file_, path.c_str(), H5P_DEFAULT), "open " + path));
  }

  Hid<H5Fclose> file_;
};

}  // namespace lockstep::test
