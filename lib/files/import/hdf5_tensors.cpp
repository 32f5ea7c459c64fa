#include "files/import/hdf5_tensors.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "files/tensor_file.hpp"

namespace lockstep {
namespace {

namespace limits = tensor_file_limits;

constexpr std::uint64_t address_bytes = 8;
constexpr std::uint64_t undefined_address = ~std::uint64_t{0};

// Types of messages in an object header.
namespace message {
constexpr std::uint64_t dataspace = 0x01;
constexpr std::uint64_t link = 0x06;
constexpr std::uint64_t datatype = 0x03;
constexpr std::uint64_t external_files = 0x07;
constexpr std::uint64_t layout = 0x08;
constexpr std::uint64_t attribute = 0x0C;
constexpr std::uint64_t continuation = 0x10;
constexpr std::uint64_t symbol_table = 0x11;
}  // namespace message

struct Message {
  std::uint64_t kind;
  bool is_shared;    // its content is stored elsewhere
  std::uint64_t at;  // offset of the content's first byte
  std::uint64_t bytes;
};

// IEEE little-endian types in the format's encoding, from the byte of class and version on.
struct FloatType {
  std::string_view bytes;
  StoredFloat form;
};
using namespace std::string_view_literals;
constexpr std::array float_types = {
    FloatType{"\x11\x20\x0F\0\2\0\0\0\0\0\x10\0\x0A\5\0\x0A\x0F\0\0\0"sv, StoredFloat::f16},
    FloatType{"\x11\x20\x1F\0\4\0\0\0\0\0\x20\0\x17\x08\0\x17\x7F\0\0\0"sv, StoredFloat::f32},
    FloatType{"\x11\x20\x3F\0\x08\0\0\0\0\0\x40\0\x34\x0B\0\x34\xFF\3\0\0"sv, StoredFloat::f64}};

class Hdf5Reader {
 public:
  explicit Hdf5Reader(const WeightBytes& file) : file_(file) {
    constexpr std::uint64_t version_at = 8;
    constexpr std::uint64_t sizes_at = 13;
    const std::uint64_t version = file.number(version_at, 1);
    if (version > 1) newer();
    // Version 1 has four additional bytes.
    const std::uint64_t addresses = version == 0 ? 24 : 28;
    if (file.number(sizes_at, 1) != address_bytes || file.number(sizes_at + 1, 1) != address_bytes ||
        file.number(addresses, address_bytes) != 0) {
      file.refuse("its HDF5 addresses are not 8 bytes long, or do not start at 0");
    }
    const std::uint64_t end = file.number(addresses + 2 * address_bytes, address_bytes);
    if (end > file.size()) {
      file.refuse(fmt::format("it has {} bytes, but its superblock states {}", file.size(), end));
    }
    root_ = file.number(addresses + 5 * address_bytes, address_bytes);
  }

  bool has_attribute(std::string_view name) const {
    for (const Message& one : messages_of(root_, "its root group")) {
      if (one.kind == message::attribute && !one.is_shared && attribute_name(one) == name) return true;
    }
    return false;
  }

  bool has_member(std::string_view name) {
    const std::vector<Member>& all = members();
    return std::ranges::find(all, name, &Member::name) != all.end();
  }

  Hdf5Root root() {
    Hdf5Root root;
    for (const Member& member : members()) {
      root.names.push_back(member.name);
      root.has_floats = root.has_floats || (!member.is_link && is_float(member));
    }
    std::ranges::sort(root.names);
    return root;
  }

  std::vector<ParameterStore::Entry> tensors() {
    for (const Member& member : members()) {
      if (member.is_link) file_.refuse(fmt::format("'{}' is a soft or external link", member.name));
      if (!is_counter(member.name)) read_tensor(member.name, member.header);
    }
    if (entries_.empty()) file_.refuse("it holds no tensors");
    std::ranges::sort(entries_, {}, &ParameterStore::Entry::name);
    return std::move(entries_);
  }

 private:
  struct Member {
    std::string name;
    std::uint64_t header;  // address of its object header
    bool is_link;
  };

  [[noreturn]] void newer() const {
    file_.refuse("its HDF5 format is newer than the one that h5py writes by default (libver='latest', or track_order)");
  }

  // The messages of a version 1 object header, including its continuations.
  std::vector<Message> messages_of(std::uint64_t header, const std::string& object) const {
    constexpr std::uint64_t prefix_bytes = 16;
    constexpr std::uint64_t before_content = 8;
    if (file_.starts(header, "OHDR")) newer();
    if (file_.number(header, 1) != 1) file_.refuse(fmt::format("{} is not an HDF5 object", object));
    const std::uint64_t count = file_.number(header + 2, 2);
    std::vector<Message> messages;
    std::vector<Message> blocks = {{message::continuation, false, header + prefix_bytes, file_.number(header + 8, 4)}};
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      file_.piece(blocks[block].at, blocks[block].bytes);
      std::uint64_t at = blocks[block].at;
      const std::uint64_t end = at + blocks[block].bytes;
      while (messages.size() < count && end - at >= before_content) {
        const std::uint64_t bytes = file_.number(at + 2, 2);
        const Message one{file_.number(at, 2), (file_.number(at + 4, 1) & 2) != 0, at + before_content, bytes};
        if (bytes > end - one.at) file_.refuse(fmt::format("{} has a truncated header", object));
        if (one.kind == message::continuation) {
          blocks.push_back({one.kind, false, file_.number(one.at, address_bytes),
                            file_.number(one.at + address_bytes, address_bytes)});
        }
        messages.push_back(one);
        at = one.at + bytes;
      }
    }
    return messages;
  }

  std::optional<Message> find(const std::vector<Message>& messages, std::uint64_t kind,
                              const std::string& object) const {
    const auto found = std::ranges::find(messages, kind, &Message::kind);
    if (found == messages.end()) return std::nullopt;
    if (found->is_shared) file_.refuse(fmt::format("{} shares a header message with other objects", object));
    return *found;
  }

  std::string_view attribute_name(const Message& one) const {
    const std::uint64_t version = file_.number(one.at, 1);
    const std::uint64_t before_name = version < 3 ? 8 : 9;
    const std::string_view name = file_.piece(one.at + before_name, file_.number(one.at + 2, 2));
    return name.substr(0, name.find('\0'));
  }

  // The local heap with the names of a group's members.
  std::string_view names_at(std::uint64_t heap) const {
    if (!file_.starts(heap, "HEAP")) file_.refuse("its list of names (local heap) is missing");
    return file_.piece(file_.number(heap + 24, address_bytes), file_.number(heap + 8, address_bytes));
  }

  // The members of the root.
  const std::vector<Member>& members() {
    const std::optional<Message> table =
        find(messages_of(root_, "its root group"), message::symbol_table, "its root group");
    if (!table) newer();
    heap_ = names_at(file_.number(table->at + address_bytes, address_bytes));
    read_tree(file_.number(table->at, address_bytes), {});
    return members_;
  }

  // Visits a B-tree node. `level` is the level of its parent.
  void read_tree(std::uint64_t node, std::optional<std::uint64_t> level) {
    constexpr std::uint64_t before_keys = 24;
    if (file_.starts(node, "SNOD")) {
      if (level.value_or(0) != 0) file_.refuse("its index of names (B-tree) is damaged");
      return read_members(node);
    }
    const bool is_tree = file_.starts(node, "TREE") && file_.number(node + 4, 1) == 0;
    const std::uint64_t own = file_.number(node + 5, 1);
    // Levels must decrease on the way down, so that the recursion ends.
    if (!is_tree || (level && own + 1 != *level) || ++nodes_ > limits::tensors) {
      file_.refuse("its index of names (B-tree) is damaged");
    }
    const std::uint64_t children = file_.number(node + 6, 2);
    for (std::uint64_t child = 0; child < children; ++child) {
      const std::uint64_t key_and_child = 2 * address_bytes;
      read_tree(file_.number(node + before_keys + child * key_and_child + address_bytes, address_bytes), own);
    }
  }

  void read_members(std::uint64_t node) {
    constexpr std::uint64_t member_bytes = 40;
    constexpr std::uint64_t soft_link = 2;
    const std::uint64_t members = file_.number(node + 6, 2);
    // Damaged trees may reference a node twice.
    if (++nodes_ > limits::tensors || members_.size() + members > limits::tensors) {
      file_.refuse(fmt::format("it holds more than {} tensors", limits::tensors));
    }
    for (std::uint64_t member = 0; member < members; ++member) {
      const std::uint64_t at = node + 8 + member * member_bytes;
      members_.push_back({name_at(file_.number(at, address_bytes)), file_.number(at + address_bytes, address_bytes),
                          file_.number(at + 2 * address_bytes, 4) == soft_link});
    }
  }

  std::string name_at(std::uint64_t offset) const {
    const std::string_view rest = heap_.substr(std::min<std::uint64_t>(offset, heap_.size()));
    const std::size_t length = rest.find('\0');
    if (length == 0 || length == std::string_view::npos || length > limits::name_bytes) {
      file_.refuse("a tensor has an invalid name");
    }
    return std::string(rest.substr(0, length));
  }

  void read_tensor(const std::string& name, std::uint64_t header) {
    const std::string object = fmt::format("'{}'", name);
    const std::vector<Message> messages = messages_of(header, object);
    const auto asked = [&](std::uint64_t kind) { return find(messages, kind, object); };
    if (asked(message::symbol_table) || asked(message::link)) file_.refuse(object + " is a group, not a tensor");
    const std::optional<Message> space = asked(message::dataspace);
    const std::optional<Message> type = asked(message::datatype);
    const std::optional<Message> layout = asked(message::layout);
    if (!space || !type || !layout) file_.refuse(object + " is not a dataset");
    if (asked(message::external_files)) file_.refuse(object + " stores its values in another file");
    const StoredFloat form = form_of(object, *type);
    const std::vector<std::uint64_t> dims = dims_of(object, *space);
    const std::uint64_t bytes = file_.count_of(name, dims, size_of(form)) * size_of(form);
    // Two tensors may claim the same bytes.
    total_ += bytes;
    if (total_ > file_.size()) file_.refuse("its tensors are larger than the file");
    entries_.push_back(WeightBytes::tensor(name, dims, values_of(object, *layout, bytes), form));
  }

  std::optional<StoredFloat> float_in(const Message& type) const {
    for (const FloatType& known : float_types) {
      if (type.bytes >= known.bytes.size() && file_.starts(type.at, known.bytes)) return known.form;
    }
    return std::nullopt;
  }

  bool is_float(const Member& member) const {
    const std::string object = fmt::format("'{}'", member.name);
    const std::optional<Message> type = find(messages_of(member.header, object), message::datatype, object);
    return type && float_in(*type);
  }

  StoredFloat form_of(const std::string& object, const Message& type) const {
    const std::optional<StoredFloat> form = float_in(type);
    if (!form) file_.refuse(object + " is not little-endian floating point of 16, 32 or 64 bits");
    return *form;
  }

  std::vector<std::uint64_t> dims_of(const std::string& object, const Message& space) const {
    const std::uint64_t version = file_.number(space.at, 1);
    const std::uint64_t rank = file_.number(space.at + 1, 1);
    if (version < 1 || version > 2 || rank > limits::dimensions) file_.refuse(object + " has an invalid shape");
    constexpr std::uint64_t no_values = 2;
    if (version == 2 && file_.number(space.at + 3, 1) == no_values) file_.refuse(object + " has no values");
    std::vector<std::uint64_t> dims;
    for (std::uint64_t dim = 0; dim < rank; ++dim) {
      const std::uint64_t before_dims = version == 1 ? 8 : 4;
      dims.push_back(file_.number(space.at + before_dims + dim * address_bytes, address_bytes));
    }
    return dims;
  }

  std::string_view values_of(const std::string& object, const Message& layout, std::uint64_t bytes) const {
    enum Layout : std::uint64_t { compact, contiguous };
    const std::uint64_t version = file_.number(layout.at, 1);
    const std::uint64_t kind = file_.number(layout.at + 1, 1);
    if (version < 3 || version > 4 || kind > contiguous) {
      file_.refuse(object + " is chunked or compressed");
    }
    const bool is_here = kind == compact;
    const std::uint64_t at = is_here ? layout.at + 4 : file_.number(layout.at + 2, address_bytes);
    const std::uint64_t stored = is_here ? file_.number(layout.at + 2, 2) : file_.number(layout.at + 10, address_bytes);
    if (at == undefined_address || stored != bytes) {
      file_.refuse(
          fmt::format("{} has {} bytes, but its shape needs {}", object, at == undefined_address ? 0 : stored, bytes));
    }
    return file_.piece(at, bytes);
  }

  const WeightBytes& file_;
  std::uint64_t root_ = 0;   // address of its object header
  std::string_view heap_;    // names of the root's members
  std::uint64_t nodes_ = 0;  // number of B-tree nodes read so far
  std::uint64_t total_ = 0;  // bytes of tensors so far
  std::vector<Member> members_;
  std::vector<ParameterStore::Entry> entries_;
};

}  // namespace

std::vector<ParameterStore::Entry> read_hdf5_tensors(const WeightBytes& file) { return Hdf5Reader(file).tensors(); }

Hdf5Root hdf5_root(const WeightBytes& file) { return Hdf5Reader(file).root(); }

bool has_root_attribute(const WeightBytes& file, std::string_view name) { return Hdf5Reader(file).has_attribute(name); }

bool has_root_member(const WeightBytes& file, std::string_view name) { return Hdf5Reader(file).has_member(name); }

}  // namespace lockstep
