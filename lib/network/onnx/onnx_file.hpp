// An ONNX file as untrusted input: its nodes, and its arrays with checked sizes.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Operator sets whose operators the reader knows.
inline constexpr std::int64_t oldest_operator_set = 13;
inline constexpr std::int64_t newest_operator_set = 25;

// For messages: names and lists of a file on one line, of which long ones are cut.
std::string short_text(std::string_view name);
std::string short_text(const std::vector<std::int64_t>& list);

class OnnxFile {
 public:
  // Reads the whole file, but not its external data. Throws Error(usage) if it cannot be opened or has another operator
  // set, and Error(bad_data) if it is damaged.
  explicit OnnxFile(std::filesystem::path path);

  const onnx::GraphProto& graph() const { return model_.graph(); }
  std::int64_t operator_set() const { return operator_set_; }
  // Whether PyTorch's exporter notes that it merged batch norms into other layers.
  bool has_merged_norms() const { return has_merged_norms_; }
  std::string name() const { return path_.filename().string(); }  // for messages

  // Error(bad_data) and Error(usage): "network 'net.onnx' cannot be read: <what>. <what to try>" and "... cannot be
  // used: <what>."
  [[noreturn]] void damaged(const std::string& what) const;
  [[noreturn]] void unusable(const std::string& what) const;

  // The elements of an array of fp32 or int64, in row-major order. They may be in a file beside this one, which must
  // lie in the same folder and be no link. Throws as damaged() or unusable().
  std::vector<float> floats(const onnx::TensorProto& tensor) const;
  std::vector<std::int64_t> integers(const onnx::TensorProto& tensor) const;

 private:
  std::int64_t count_of(const onnx::TensorProto& tensor) const;
  // Little-endian; `memory` holds them if they come from another file.
  std::string_view bytes_of(const onnx::TensorProto& tensor, std::string& memory) const;
  std::string external_bytes(const onnx::TensorProto& tensor) const;
  template <typename Value, typename Listed>
  std::vector<Value> elements(const onnx::TensorProto& tensor, const Listed& listed) const;

  // Of each file beside this one: bytes that arrays take, and these arrays. Arrays that share bytes could fill the
  // memory.
  struct External {
    std::uint64_t bytes = 0;
    std::set<const onnx::TensorProto*> arrays;
  };
  mutable std::map<std::string, External> external_;

  std::filesystem::path path_;
  onnx::ModelProto model_;
  std::int64_t operator_set_ = 0;
  bool has_merged_norms_ = false;
};

}  // namespace lockstep
