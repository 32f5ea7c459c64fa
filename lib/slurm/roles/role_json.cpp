#include "slurm/roles/role_json.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

class RoleReader {
 public:
  RoleReader(const Json& value, std::string place) : place_(std::move(place)) {
    if (!value.is_object()) refuse("is not an object");
    for (const auto& [name, field] : value.items()) read(name, field);
  }

  Role role() {
    if (!has_succeeded_) role_.min_succeeded_instances = all_instances(role_);
    return role_;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw Error(Failure::usage, place_ + " " + what); }

  void read(const std::string& name, const Json& field) {
    if (name == "name") return void(role_.name = text(name, field));
    if (name == "world") return void(role_.world = text(name, field));
    if (name == "instances") return void(role_.instances = number(name, field));
    if (name == "cpus") return void(role_.cpus = number(name, field));
    if (name == "memory_mb") return void(role_.memory_mb = number(name, field));
    if (name == "gpus") return void(role_.gpus = number(name, field));
    if (name == "array_instances") return void(role_.array_instances = number(name, field));
    if (name == "first_instance") return void(role_.first_instance = number(name, field));
    if (name == "min_failed_instances") return void(role_.min_failed_instances = number(name, field));
    if (name == "command") return read_command(field);
    if (name == "ports") return read_ports(field);
    if (name == "container") return read_container(field);
    if (name == "storages") return read_storages(field);
    if (name != "min_succeeded_instances") refuse(fmt::format("has the unknown field '{}'", printable(name)));
    role_.min_succeeded_instances = number(name, field);
    has_succeeded_ = true;
  }

  void read_command(const Json& field) {
    if (!field.is_array()) refuse("has a 'command' that is not a list of strings");
    for (const Json& word : field) role_.command.push_back(text("command", word));
  }

  void read_ports(const Json& field) {
    if (!field.is_object()) refuse("has 'ports' that are not an object of counts");
    for (const auto& [label, count] : field.items()) role_.ports[label] = number("ports", count);
  }

  // Reads texts of an object into the members that `find` returns for their names; null: unknown.
  template <typename Find>
  void read_texts(const std::string& owner, const Json& object, Find find) {
    if (!object.is_object()) refuse(fmt::format("has '{}' that is not an object", owner));
    for (const auto& [name, field] : object.items()) {
      std::string* const target = find(name);
      if (target == nullptr) refuse(fmt::format("has the unknown field '{}' in '{}'", printable(name), owner));
      *target = text(name, field);
    }
  }

  void read_container(const Json& field) {
    Container& container = role_.container;
    read_texts("container", field, [&](const std::string& name) {
      return name == "program" ? &container.program : name == "image" ? &container.image : nullptr;
    });
  }

  void read_storages(const Json& field) {
    if (!field.is_array()) refuse("has 'storages' that are not a list");
    for (const Json& one : field) {
      Storage& storage = role_.storages.emplace_back();
      read_texts("storages", one, [&](const std::string& name) {
        return name == "name"    ? &storage.name
               : name == "path"  ? &storage.path
               : name == "mount" ? &storage.mount
                                 : nullptr;
      });
    }
  }

  std::string text(std::string_view name, const Json& field) const {
    if (!field.is_string()) refuse(fmt::format("has a '{}' that is not a string", name));
    return field.get<std::string>();
  }

  std::int64_t number(std::string_view name, const Json& field) const {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    const bool fits = field.is_number_integer() && (!field.is_number_unsigned() || field.get<std::uint64_t>() <= most);
    if (!fits) refuse(fmt::format("has a '{}' that is not a whole number", name));
    return field.get<std::int64_t>();
  }

  std::string place_;
  Role role_;
  bool has_succeeded_ = false;
};

}  // namespace

nlohmann::json parse_shallow_json(const std::string& text, int nesting_limit) {
  const auto shallow = [nesting_limit](int depth, Json::parse_event_t, Json&) {
    require(depth <= nesting_limit, Failure::usage, "it is nested too deeply");
    return true;
  };
  try {
    return Json::parse(text, shallow);
  } catch (const Json::exception&) {
    throw Error(Failure::usage, "it is not valid JSON");
  }
}

nlohmann::json roles_json(const std::vector<Role>& roles) {
  Json list = Json::array();
  for (const Role& role : roles) {
    Json one = {{"name", role.name},
                {"instances", role.instances},
                {"command", role.command},
                {"world", role.world},
                {"cpus", role.cpus},
                {"memory_mb", role.memory_mb},
                {"gpus", role.gpus},
                {"ports", role.ports},
                {"min_failed_instances", role.min_failed_instances},
                {"min_succeeded_instances", role.min_succeeded_instances}};
    if (role.array_instances > 0) {
      one["array_instances"] = role.array_instances;
      one["first_instance"] = role.first_instance;
    }
    if (!role.container.program.empty()) {
      one["container"] = {{"program", role.container.program}, {"image", role.container.image}};
    }
    for (const Storage& storage : role.storages) {
      one["storages"].push_back({{"name", storage.name}, {"path", storage.path}, {"mount", storage.mount}});
    }
    list.push_back(std::move(one));
  }
  return list;
}

std::vector<Role> roles_of(const nlohmann::json& content) {
  const auto list = content.find("roles");
  require(list != content.end() && list->is_array(), Failure::usage, "it has no list 'roles'");
  require(list->size() <= max_roles, Failure::usage, "it has more than {} roles", max_roles);
  std::vector<Role> roles;
  for (const Json& value : *list) roles.push_back(RoleReader(value, fmt::format("roles[{}]", roles.size())).role());
  check_roles(roles);
  return roles;
}

}  // namespace lockstep
