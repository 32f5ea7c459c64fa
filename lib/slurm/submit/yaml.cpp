#include "slurm/submit/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/text/printable.hpp"
#include "base/text/utf8.hpp"

namespace lockstep {
namespace {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = first_character(text);
    if (!character.code) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

bool means_nothing(std::string_view plain) { return plain == "null" || plain == "~" || plain.empty(); }

// Builds the tree. Keeps the complete value of each anchor; every alias copies it.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string name, const YamlKind& kind) : name_(std::move(name)), kind_(kind) {}

  YamlValue take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(value_at(mark, YamlValue::Kind::nothing), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) refuse(mark, "an alias is part of the value that it refers to");
    count(mark, found->second.values);
    add({found->second.value, found->second.values, YAML::NullAnchor}, YAML::NullAnchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_tag(mark, tag);
    if (text.find('\0') != std::string::npos)
      refuse(mark, "a string has a NUL character, which arguments of programs cannot have");
    if (!is_utf8(text)) refuse(mark, "a string is not valid UTF-8");
    Open open = value_at(mark, YamlValue::Kind::text);
    open.value.is_quoted = tag != "?";
    open.value.text = text;
    if (!open.value.is_quoted && means_nothing(text)) open.value.kind = YamlValue::Kind::nothing;
    add(std::move(open), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(mark, tag, anchor, YamlValue::Kind::list);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(mark, tag, anchor, YamlValue::Kind::map);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    YamlValue value;
    std::int64_t values = 1;
    YAML::anchor_t anchor = YAML::NullAnchor;
    bool has_key = false;  // of a map: the last entry still has no value
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string_view what) const {
    throw Error(Failure::usage, fmt::format("{}{}. {}", yaml_place(name_, mark.line + 1), what, kind_.outcome));
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    const bool is_default_point = tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:str";
    if (is_default_point) return;
    refuse(mark, fmt::format("a value has a custom tag ('!...'), which {} do not support", kind_.files));
  }
  void count(const YAML::Mark& mark, std::int64_t values) {
    counted_ += values;
    if (counted_ > yaml_limits::values) {
      refuse(mark, fmt::format("the file has more than {} values, with aliases expanded", yaml_limits::values));
    }
  }
  Open value_at(const YAML::Mark& mark, YamlValue::Kind kind) {
    count(mark, 1);
    Open open;
    open.value.kind = kind;
    open.value.line = mark.line + 1;
    return open;
  }
  void begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlValue::Kind kind) {
    refuse_tag(mark, tag);
    if (open_.size() >= yaml_limits::depth) {
      refuse(mark, fmt::format("lists and maps are nested more than {} deep", yaml_limits::depth));
    }
    open_.push_back(value_at(mark, kind));
    open_.back().anchor = anchor;
  }
  void end() {
    Open ended = std::move(open_.back());
    open_.pop_back();
    const YAML::anchor_t anchor = ended.anchor;
    add(std::move(ended), anchor);
  }
  void add(Open ended, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchored_[anchor] = ended;
    if (open_.empty()) {
      root_ = std::move(ended.value);
      return;
    }
    Open& parent = open_.back();
    parent.values += ended.values;
    if (parent.value.kind == YamlValue::Kind::list) {
      parent.value.items.push_back(std::move(ended.value));
    } else if (std::exchange(parent.has_key, !parent.has_key)) {
      parent.value.entries.back().value = std::move(ended.value);
    } else {
      add_key(parent.value, ended.value);
    }
  }
  void add_key(YamlValue& map, const YamlValue& key) const {
    const auto place = yaml_place(name_, key.line);
    require(key.kind == YamlValue::Kind::text, Failure::usage, "{}a key is not a string. {}", place, kind_.outcome);
    require(map.find(key.text) == nullptr, Failure::usage, "{}the key '{}' occurs twice in one map. {}", place,
            printable(key.text), kind_.outcome);
    map.entries.push_back({key.text, key.line, {}});
  }

  std::string name_;
  YamlKind kind_;
  YamlValue root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Open> anchored_;
  std::int64_t counted_ = 0;
};

}  // namespace

const YamlEntry* YamlValue::find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &YamlEntry::key);
  return found == entries.end() ? nullptr : &*found;
}

const YamlValue* find_value(const YamlValue& map, std::string_view key) {
  const YamlEntry* const entry = map.find(key);
  return entry == nullptr || entry->value.kind == YamlValue::Kind::nothing ? nullptr : &entry->value;
}

std::string yaml_place(const std::string& name, int line) {
  return line == 0 ? fmt::format("'{}': ", printable(name)) : fmt::format("'{}', line {}: ", printable(name), line);
}

YamlValue plain_scalar(const std::string& text, const YamlKind& kind) {
  require(is_utf8(text), Failure::usage, "'{}' is not valid UTF-8. {}", printable(text), kind.outcome);
  YamlValue value;
  value.kind = means_nothing(text) ? YamlValue::Kind::nothing : YamlValue::Kind::text;
  value.text = text;
  return value;
}

YamlValue parse_yaml(const std::string& text, const std::string& name, const YamlKind& kind) {
  require(text.size() <= yaml_limits::bytes, Failure::usage, "'{}' is larger than {} bytes, the limit for {}. {}",
          printable(name), yaml_limits::bytes, kind.files, kind.outcome);
  std::istringstream input(text);
  TreeBuilder builder(name, kind);
  try {
    YAML::Parser parser(input);
    require(parser.HandleNextDocument(builder), Failure::usage, "'{}' is empty. {}", printable(name), kind.outcome);
    YamlValue root = builder.take();
    TreeBuilder second(name, kind);
    require(!parser.HandleNextDocument(second), Failure::usage, "'{}' has more than one document. {}", printable(name),
            kind.outcome);
    return root;
  } catch (const YAML::Exception& error) {
    throw Error(Failure::usage, fmt::format("{}this is not valid YAML: {}. {}", yaml_place(name, error.mark.line + 1),
                                            printable(error.msg), kind.outcome));
  }
}

}  // namespace lockstep
