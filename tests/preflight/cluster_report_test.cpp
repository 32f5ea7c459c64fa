#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "made_cluster.hpp"
#include "preflight/report.hpp"

namespace lockstep::cluster_report_test {

using testing::HasSubstr;

TEST(ClusterReport, a_line_for_each_node_and_each_sum) {
  EXPECT_EQ(cluster_table(made_cluster(2)),
            "node  ranks  cores  samples/s  clock  to next     link    free    writes   reads\n"
            "n1      0-1      8       1000   0 us     2 us  10 GB/s  500 GB  900 MB/s  2 GB/s\n"
            "n2      2-3      8       1000   0 us        -        -  500 GB  900 MB/s  2 GB/s\n"
            "\n"
            "sum of   median   99 %  algorithm       bus\n"
            "1 KiB      2 us   2 us   512 MB/s  768 MB/s\n"
            "46.0 MB   10 ms  10 ms   4.6 GB/s  6.9 GB/s\n"
            "by mpi\n");
}

TEST(ClusterReport, one_node_has_no_links) {
  EXPECT_THAT(cluster_table(made_cluster(1)),
              HasSubstr("node  ranks  cores  samples/s  clock    free    writes   reads\n"
                        "n1      0-1      8       1000   0 us  500 GB  900 MB/s  2 GB/s\n"));
}

TEST(ClusterReport, of_many_nodes_the_slowest_are_shown) {
  ClusterFacts facts = made_cluster(70);
  facts.ranks[139].samples_per_second = 7;
  const std::string table = cluster_table(facts);
  EXPECT_THAT(table, HasSubstr("\nn70"));
  EXPECT_THAT(table, HasSubstr("and 6 more nodes"));
}

TEST(ClusterReport, names_of_hosts_do_not_steer_the_terminal) {
  ClusterFacts facts = made_cluster(1);
  facts.nodes[0].host = "\x1b[2J";
  EXPECT_THAT(cluster_table(facts), HasSubstr("\\x1b[2J"));
  EXPECT_EQ(findings_text({{Severity::note, {}, "a\nb"}}), "note: a\\x0ab\n");
}

TEST(ClusterReport, facts_go_from_rank_to_rank_as_they_are) {
  const ClusterFacts facts = made_cluster(3);
  EXPECT_EQ(json_of(rank_facts(json_of(facts.ranks[1]).dump())), json_of(facts.ranks[1]));
  RankFacts wrong = facts.ranks[2];
  wrong.wrong_contributor = 5;
  EXPECT_EQ(rank_facts(json_of(wrong).dump()).wrong_contributor, 5);
  EXPECT_EQ(json_of(node_facts(json_of(facts.nodes[2]).dump())), json_of(facts.nodes[2]));
}

TEST(ClusterReport, programs_read_what_was_measured_and_found) {
  ClusterFacts facts = made_cluster(3);
  facts.nodes[1].folder.fault = "gone";
  const std::vector<ClusterFinding> findings = judge(facts, {});
  const nlohmann::json json = cluster_json(facts, findings, diagnosis_of(findings, facts));
  EXPECT_EQ(json["verdict"]["code"], 71);
  EXPECT_EQ(json["verdict"]["hosts"], nlohmann::json({"n2"}));
  EXPECT_EQ(json["findings"][0]["severity"], "bad node");
  EXPECT_EQ(json["nodes"].size(), 3);
  EXPECT_EQ(json["ranks"][5]["node"], 2);
  EXPECT_EQ(json["sums"][1]["bus_bytes_per_second"], bus_bytes_per_second(facts.sums[1], 6));
}

}  // namespace lockstep::cluster_report_test
