#include "slurm/submit/job_changes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "slurm/submit/yaml.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"

namespace lockstep::job_changes_test {

constexpr const char* job = R"(name: a
parameters: {epochs: 2, layers: [16, 32], a.b: 1, a: {b: 2}}
defaults:
taskRoles:
  worker:
    resourcePerInstance: {cpu: 1}
    commands: [first, second]
)";

YamlValue changed(const std::vector<std::string>& texts) {
  std::vector<JobChange> changes;
  std::vector<std::string> options;
  for (const std::string& text : texts) {
    changes.push_back(parse_job_change(text));
    options.push_back(changes.back().option);
  }
  YamlValue root = parse_yaml(job, "job.yaml");
  change_job(JobReader("job.yaml", options), changes, root);
  return root;
}

std::string refusal(const std::string& text) {
  return message_of(Failure::usage, [&] { changed({text}); });
}

TEST(JobChangesTest, a_path_names_a_value_of_the_file) {
  const YamlValue root = changed({"parameters.epochs=1=one", "parameters.layers.1=64",
                                  "taskRoles.worker.commands[0]=null", "parameters.a.b=", "parameters.epochs=3"});
  const YamlValue& parameters = root.find("parameters")->value;
  EXPECT_EQ(parameters.find("epochs")->value.text, "3") << "the last change counts";
  EXPECT_EQ(parameters.find("epochs")->value.line, -5);
  EXPECT_EQ(parameters.find("layers")->value.items.at(0).text, "16");
  EXPECT_EQ(parameters.find("layers")->value.items.at(1).text, "64");
  const YamlValue& worker = root.find("taskRoles")->value.find("worker")->value;
  EXPECT_EQ(worker.find("commands")->value.items.at(0).kind, YamlValue::Kind::nothing) << "as in YAML";
  EXPECT_EQ(parameters.find("a.b")->value.text, "");
  EXPECT_EQ(changed({"parameters.epochs=a=b"}).find("parameters")->value.find("epochs")->value.text, "a=b");
}

TEST(JobChangesTest, a_value_may_be_a_list_a_map_or_text_in_quotes) {
  const YamlValue root = changed({"extras.lockstep.world=[worker, \"b, c\"]", "parameters={epochs: 1, layers: [8]}",
                                  "defaults.virtualCluster='[a]'", "name=a [b]"});
  const YamlValue& world = root.find("extras")->value.find("lockstep")->value.find("world")->value;
  ASSERT_EQ(world.items.size(), 2);
  EXPECT_EQ(world.items.at(1).text, "b, c");
  EXPECT_EQ(world.items.at(1).line, -1) << "of its option";
  const YamlValue& layers = root.find("parameters")->value.find("layers")->value;
  EXPECT_EQ(layers.items.at(0).text, "8");
  EXPECT_EQ(layers.items.at(0).line, -2);
  EXPECT_EQ(root.find("parameters")->value.entries.at(0).line, -2);
  EXPECT_EQ(root.find("defaults")->value.find("virtualCluster")->value.text, "[a]");
  EXPECT_EQ(root.find("name")->value.text, "a [b]");
  for (const char* odd : {"[a", "[a] b", "{a: 1", "\"a", "'a' b", "[!x a]", "[*a]"}) {
    expect_message(refusal(std::string("parameters.epochs=") + odd), {"--set parameters.epochs", odd, "[a, b]"});
  }
  for (const char* path : {"name", "taskRoles.worker.resourcePerInstance.cpu", "taskRoles.worker.commands.0"}) {
    expect_message(refusal(std::string(path) + "="), {std::string("--set ") + path, "null"});
  }
}

TEST(JobChangesTest, the_longest_key_with_dots_counts) {
  const YamlValue parameters = changed({"parameters.a.b=3"}).find("parameters")->value;
  EXPECT_EQ(parameters.find("a.b")->value.text, "3");
  EXPECT_EQ(parameters.find("a")->value.find("b")->value.text, "2");
}

TEST(JobChangesTest, a_field_that_the_protocol_knows_may_be_left_out_of_the_file) {
  const YamlValue root = changed({"jobRetryCount=2", "defaults.virtualCluster=gpu", "extras.lockstep.nodes=2",
                                  "taskRoles.worker.completion.minFailedInstances=-1"});
  EXPECT_EQ(root.find("jobRetryCount")->value.text, "2");
  EXPECT_EQ(root.find("defaults")->value.find("virtualCluster")->value.text, "gpu");
  EXPECT_EQ(root.find("extras")->value.find("lockstep")->value.find("nodes")->value.line, -3);
  EXPECT_EQ(root.find("taskRoles")->value.find("worker")->value.find("completion")->value.entries.size(), 1U);
}

TEST(JobChangesTest, a_path_that_names_nothing_is_refused_with_the_nearest_names) {
  expect_message(refusal("parameters.epoch=1"), {"job.yaml", "--set parameters.epoch", "'epochs'"});
  expect_message(refusal("parameters.zzzzzzz=1"), {"epochs, layers, a.b, a"});
  expect_message(refusal("parameters.layers.2=1"), {"'2'", "0, 1"});
  expect_message(refusal("taskRoles.worker.resourcePerInstance.gpus=1"), {"'gpus'", "'gpu'"});
  expect_message(refusal("parameters.epochs.first=1"), {"'parameters.epochs'", "'first'"});
  expect_message(refusal("jobRetryCuont=1"), {"'jobRetryCount'"});
}

TEST(JobChangesTest, what_is_no_change_is_refused) {
  for (const std::string text : {"parameters.epochs", "=1", ""}) expect_message(refusal(text), {"--set", text});
  for (const std::string path : {"secrets", "secrets.token", "secrets[0]"}) {
    const std::string message = refusal(path + "=hunter2");
    expect_message(message, {"--set", "secrets"});
    EXPECT_EQ(message.find("hunter2"), std::string::npos);
  }
  expect_message(refusal("parameters.epochs=\xff"), {"UTF-8"});
}

}  // namespace lockstep::job_changes_test
