#include "preflight/judgement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "made_cluster.hpp"
#include "support/messages.hpp"

namespace lockstep::judgement_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

ClusterDiagnosis verdict(const ClusterFacts& facts, const Floors& floors = {}) {
  return diagnosis_of(judge(facts, floors), facts);
}

void expect_one(const ClusterFacts& facts, Severity severity, const std::vector<std::string>& hosts, Subjects subjects,
                const Floors& floors = {}, const std::source_location& where = std::source_location::current()) {
  const std::vector<ClusterFinding> findings = judge(facts, floors);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].severity, severity);
  EXPECT_EQ(findings[0].hosts, hosts);
  expect_message(findings[0].sentence, subjects, where);
}

TEST(Judgement, of_a_good_cluster_there_is_nothing_to_say) {
  for (const int nodes : {1, 2, 3, 7}) {
    const ClusterFacts facts = made_cluster(nodes);
    EXPECT_THAT(judge(facts, {}), IsEmpty());
    EXPECT_EQ(verdict(facts).code, 0);
  }
  expect_message(verdict(made_cluster(7)).sentence, {"7 nodes with 14 ranks"});
}

TEST(Judgement, a_slow_rank_makes_its_node_bad) {
  ClusterFacts facts = made_cluster(3);
  facts.ranks[3].samples_per_second = 410;
  expect_one(facts, Severity::bad_node, {"n2"}, {"rank 3 on n2", "410 samples/s", "41 %", "1000"});
  EXPECT_EQ(verdict(facts).code, 71);
  EXPECT_THAT(verdict(facts).hosts, ElementsAre("n2"));
  expect_message(verdict(facts).sentence, {": n2. ", "rank 3 on n2", "410 samples/s"});

  facts.ranks[3].samples_per_second = 801;
  EXPECT_THAT(judge(facts, {}), IsEmpty());
}

TEST(Judgement, of_one_node_alone_a_slow_rank_is_nobodys_fault_that_another_node_would_mend) {
  ClusterFacts facts = made_cluster(1);
  facts.ranks[0].samples_per_second = 10;
  EXPECT_EQ(judge(facts, {})[0].severity, Severity::bad_cluster);
  EXPECT_EQ(verdict(facts).code, 1);
}

TEST(Judgement, sums_that_are_wrong_everywhere_are_the_fault_of_who_gave_that_part) {
  ClusterFacts facts = made_cluster(3);
  for (RankFacts& rank : facts.ranks) rank.wrong_contributor = 4;
  expect_one(facts, Severity::bad_node, {"n3"}, {"n3"});
}

TEST(Judgement, sums_that_are_wrong_in_one_place_are_that_nodes_fault) {
  ClusterFacts facts = made_cluster(3);
  facts.ranks[0].wrong_contributor = 4;
  expect_one(facts, Severity::bad_node, {"n1"}, {"n1"});
}

TEST(Judgement, a_node_that_cannot_write_is_bad_and_a_folder_that_none_can_write_is_not_its_fault) {
  ClusterFacts facts = made_cluster(3);
  facts.nodes[1].folder = {"cannot write 'runs': Read-only file system. Make room.", 500e9, 0, 0};
  expect_one(facts, Severity::bad_node, {"n2"}, {"n2", "'runs'", "Read-only file system"});
  for (NodeFacts& node : facts.nodes) node.folder = facts.nodes[1].folder;
  expect_one(facts, Severity::bad_cluster, {}, {"'runs'", "Read-only file system"});
}

TEST(Judgement, two_checkpoints_need_room) {
  ClusterFacts facts = made_cluster(3);
  for (NodeFacts& node : facts.nodes) node.folder.free_bytes = 199e6;
  expect_one(facts, Severity::bad_cluster, {}, {"'runs'", "0.199 GB", "n1, n2, n3", "resnet18", "0.2 GB", "--output"});
  for (NodeFacts& node : facts.nodes) node.folder.free_bytes = 200e6;
  EXPECT_THAT(judge(facts, {}), IsEmpty());
}

TEST(Judgement, fewer_nodes_of_another_version_are_bad_and_halves_are_nobodys_fault) {
  ClusterFacts facts = made_cluster(3);
  facts.nodes[2].versions["HDF5"] = "1.14.0";
  expect_one(facts, Severity::bad_node, {"n3"}, {"HDF5", "1.10.8 on n1, n2", "1.14.0 on n3"});
  facts = made_cluster(2);
  facts.nodes[0].versions.erase("HDF5");
  expect_one(facts, Severity::bad_cluster, {}, {"HDF5", "1.10.8 on n2", "none on n1"});
}

TEST(Judgement, a_clock_is_wrong_by_more_than_it_is_known_to) {
  ClusterFacts facts = made_cluster(3);
  facts.nodes[2].clock_ahead_seconds = -2.5;
  facts.nodes[2].clock_error_seconds = 1.5;
  EXPECT_THAT(judge(facts, {}), IsEmpty());
  facts.nodes[2].clock_error_seconds = 0.5;
  expect_one(facts, Severity::bad_node, {"n3"}, {"n3", "2 s"});
  // The first node's clock is the measure of all: where it is the wrong one, the others differ from it alike.
  facts = made_cluster(3);
  facts.nodes[1].clock_ahead_seconds = facts.nodes[2].clock_ahead_seconds = 60;
  EXPECT_THAT(verdict(facts).hosts, ElementsAre("n1"));
}

TEST(Judgement, a_node_is_slow_to_send_only_where_both_its_links_are) {
  ClusterFacts facts = made_cluster(4);
  facts.nodes[1].link->bytes_per_second = 1e9;
  EXPECT_THAT(judge(facts, {}), IsEmpty());
  facts.nodes[0].link->bytes_per_second = 2e9;
  expect_one(facts, Severity::bad_node, {"n2"}, {"n2", "2 GB/s", "10 GB/s"});
}

TEST(Judgement, floors_are_of_each_node_and_of_all) {
  Floors floors;
  floors.samples_per_second = 1001;
  expect_one(made_cluster(2), Severity::bad_cluster, {}, {"n1, n2", "1001 samples/s", "1000"}, floors);
  floors = {};
  floors.write_bytes_per_second = 1e9;
  expect_one(made_cluster(1), Severity::bad_cluster, {}, {"n1 writes 'runs'", "900 MB/s", "1 GB/s"}, floors);
  floors = {};
  floors.read_bytes_per_second = 3e9;
  expect_one(made_cluster(1), Severity::bad_cluster, {}, {"n1 reads 'runs'", "2 GB/s", "3 GB/s"}, floors);
  floors = {};
  floors.bus_bytes_per_second = 9e9;  // 46 MB in 10 ms by four ranks: 4.6 GB/s times 1.5
  expect_one(made_cluster(2), Severity::bad_cluster, {},
             {"0.046 GB", "4 ranks", "6.9 GB/s", "9 GB/s", "LOCKSTEP_INTERFACE"}, floors);
}

TEST(Judgement, what_a_job_can_live_with_is_a_note) {
  ClusterFacts facts = made_cluster(2);
  facts.ranks[0].gpu = facts.ranks[1].gpu = facts.ranks[2].gpu = "00000000:1B:00.0";
  expect_one(facts, Severity::note, {}, {"0, 1 on n1", "00000000:1B:00.0", "NCCL"});
  EXPECT_EQ(verdict(facts).code, 0);
  facts = made_cluster(2);
  facts.ranks[3].device = "cpu: another, 4 threads";
  expect_one(facts, Severity::note, {}, {"cpu: a processor, 8 threads on n1, n2", "cpu: another, 4 threads on n2"});
}

TEST(Judgement, the_worst_comes_first_and_every_bad_node_is_named_once) {
  ClusterFacts facts = made_cluster(6);
  facts.ranks[0].device = "cpu: another, 4 threads";
  facts.ranks[4].samples_per_second = 1;
  facts.ranks[5].samples_per_second = 2;
  facts.nodes[2].folder.fault = "gone";
  facts.nodes[4].versions["HDF5"] = "2";
  const std::vector<ClusterFinding> findings = judge(facts, {});
  ASSERT_THAT(findings, SizeIs(4));
  EXPECT_EQ(findings[3].severity, Severity::note);
  const ClusterDiagnosis all = diagnosis_of(findings, facts);
  EXPECT_THAT(all.hosts, ElementsAre("n3", "n5"));
  expect_message(all.sentence, {": n3, n5. ", "output folder", "2"});
}

TEST(Judgement, many_hosts_are_counted) {
  ClusterFacts facts = made_cluster(20);
  for (int node = 0; node < 9; ++node) facts.nodes[static_cast<std::size_t>(node)].versions["HDF5"] = "2";
  EXPECT_THAT(verdict(facts).sentence, HasSubstr("n1, n2, n3, n4 and 5 more. "));
  EXPECT_THAT(verdict(facts).hosts, SizeIs(9));
}

}  // namespace lockstep::judgement_test
