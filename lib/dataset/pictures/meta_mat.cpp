// Reads MATLAB files through libmatio; the only file that uses libmatio.
#include "dataset/pictures/meta_mat.hpp"

#include <matio.h>

#include <cmath>
#include <memory>

#include "base/error.hpp"
#include "base/io/file.hpp"

namespace lockstep {
namespace {

using MatFile = std::unique_ptr<mat_t, int (*)(mat_t*)>;
using MatVariable = std::unique_ptr<matvar_t, void (*)(matvar_t*)>;

// Value of a field that holds one number. MATLAB stores it in the shortest type that fits.
std::int64_t number_in(const matvar_t* field) {
  if (field == nullptr || field->data == nullptr || field->nbytes == 0) return -1;
  double value = 0;
  switch (field->data_type) {
    case MAT_T_DOUBLE:
      value = *static_cast<const double*>(field->data);
      break;
    case MAT_T_INT64:
      value = static_cast<double>(*static_cast<const std::int64_t*>(field->data));
      break;
    case MAT_T_INT32:
      value = *static_cast<const std::int32_t*>(field->data);
      break;
    case MAT_T_UINT16:
      value = *static_cast<const std::uint16_t*>(field->data);
      break;
    case MAT_T_UINT8:
      value = *static_cast<const std::uint8_t*>(field->data);
      break;
    default:
      return -1;
  }
  return value >= 1 && value <= 1'000'000 && value == std::floor(value) ? static_cast<std::int64_t>(value) : -1;
}

// Value of a text field with one or two bytes per character.
std::string text_in(const matvar_t* field) {
  if (field == nullptr || field->data == nullptr || field->class_type != MAT_C_CHAR) return {};
  const auto* const bytes = static_cast<const char*>(field->data);
  switch (field->data_type) {
    case MAT_T_UINT8:
    case MAT_T_INT8:
    case MAT_T_UTF8:
      return {bytes, field->nbytes};
    case MAT_T_UINT16:
    case MAT_T_UTF16:
      break;
    default:
      return {};
  }
  std::string text;
  for (std::size_t at = 0; at + 1 < field->nbytes; at += 2) text += bytes[at + 1] == 0 ? bytes[at] : '?';
  return text;
}

}  // namespace

ClassNumbers read_meta_mat(const std::filesystem::path& file) {
  const auto damaged = [&](const char* words) {
    return Error(Failure::bad_data, fmt::format("'{}' {}. Check that it is the complete file of the development kit.",
                                                file.string(), words));
  };
  open_to_read(file);  // throws if it is not a readable regular file
  const MatFile mat(Mat_Open(file.c_str(), MAT_ACC_RDONLY), Mat_Close);
  if (!mat) throw damaged("is not a MATLAB file");
  const MatVariable synsets(Mat_VarRead(mat.get(), "synsets"), Mat_VarFree);
  if (!synsets || synsets->class_type != MAT_C_STRUCT || synsets->rank != 2 || synsets->dims == nullptr) {
    throw damaged("has no list 'synsets'");
  }
  const std::size_t count = synsets->dims[0] * synsets->dims[1];
  ClassNumbers classes;
  for (std::size_t at = 0; at < count; ++at) {
    const std::int64_t number = number_in(Mat_VarGetStructFieldByName(synsets.get(), "ILSVRC2012_ID", at));
    const std::string name = text_in(Mat_VarGetStructFieldByName(synsets.get(), "WNID", at));
    if (number < 1 || name.size() != 9 || !classes.emplace(number, name).second) {
      throw damaged("has a class without a name or without a unique number");
    }
  }
  if (classes.empty()) throw damaged("names no classes");
  return classes;
}

}  // namespace lockstep
