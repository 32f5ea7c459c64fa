// A small meta.mat.
#pragma once

#include <gtest/gtest.h>
#include <matio.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::test {

// As MATLAB has it: a list of structures, of which two fields count.
inline void write_meta_mat(const std::filesystem::path& file,
                           const std::vector<std::pair<double, std::string>>& synsets,
                           matio_compression compression = MAT_COMPRESSION_ZLIB) {
  const std::unique_ptr<mat_t, int (*)(mat_t*)> mat(Mat_CreateVer(file.c_str(), nullptr, MAT_FT_MAT5), Mat_Close);
  std::array<std::size_t, 2> dims{synsets.size(), 1};
  std::array<const char*, 3> fields{"ILSVRC2012_ID", "WNID", "words"};
  const std::unique_ptr<matvar_t, void (*)(matvar_t*)> list(
      Mat_VarCreateStruct("synsets", 2, dims.data(), fields.data(), fields.size()), Mat_VarFree);
  for (std::size_t at = 0; at < synsets.size(); ++at) {
    auto [number, name] = synsets[at];  // libmatio takes no constants
    std::array<std::size_t, 2> one{1, 1};
    std::array<std::size_t, 2> letters{1, name.size()};
    Mat_VarSetStructFieldByName(list.get(), "ILSVRC2012_ID", at,
                                Mat_VarCreate(nullptr, MAT_C_DOUBLE, MAT_T_DOUBLE, 2, one.data(), &number, 0));
    Mat_VarSetStructFieldByName(list.get(), "WNID", at,
                                Mat_VarCreate(nullptr, MAT_C_CHAR, MAT_T_UTF8, 2, letters.data(), name.data(), 0));
    Mat_VarSetStructFieldByName(list.get(), "words", at,
                                Mat_VarCreate(nullptr, MAT_C_CHAR, MAT_T_UTF8, 2, letters.data(), name.data(), 0));
  }
  ASSERT_EQ(Mat_VarWrite(mat.get(), list.get(), compression), 0);
}

}  // namespace lockstep::test
