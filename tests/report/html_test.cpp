// Text of any origin in a page: it is never markup.
#include "report/page/html.hpp"

#include <gtest/gtest.h>

namespace lockstep::html_test {

TEST(HtmlTest, what_would_be_markup_becomes_entities_and_what_steers_a_reader_is_shown_by_number) {
  EXPECT_EQ(escaped("<b a=\"1\" c='2'>&amp;</b>"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;&lt;/b&gt;");
  EXPECT_EQ(escaped("a\x1b[31m\xff\n"), "a\\x1b[31m\\xff\\x0a");
  EXPECT_EQ(escaped("naïve \xe2\x80\xae"), "naïve \\u202e");
}

TEST(HtmlTest, every_function_escapes_the_text_that_it_takes) {
  const std::string bad = "<script>alert(1)</script>";
  const std::vector<TableColumn> columns{{bad}, {bad, TableColumn::Align::right}};
  const std::vector<std::vector<std::string>> rows{{bad, bad}};
  for (const std::string& html : {html_table(columns, rows), html_paragraph(bad), html_section(bad, "<p></p>"),
                                  html_details(bad, "<p></p>"), html_page(bad, "<p></p>")}) {
    EXPECT_EQ(html.find("<script"), std::string::npos) << html;
    EXPECT_NE(html.find("&lt;script&gt;"), std::string::npos) << html;
  }
}

TEST(HtmlTest, a_table_has_a_cell_for_each_column) {
  const std::vector<TableColumn> columns{{"name"}, {"count", TableColumn::Align::right}};
  const std::vector<std::vector<std::string>> rows{{"a", "1"}, {"b"}};
  EXPECT_EQ(
      html_table(columns, rows),
      "<div class=\"scroll\"><table>\n<thead><tr><th>name</th><th class=\"right\">count</th></tr></thead>\n<tbody>\n"
      "<tr><td>a</td><td class=\"right\">1</td></tr>\n<tr><td>b</td><td class=\"right\"></td></tr>\n"
      "</tbody></table></div>\n");
}

TEST(HtmlTest, a_page_loads_nothing_and_knows_both_schemes_of_colours) {
  const std::string page = html_page("title", "<p>text</p>");
  EXPECT_TRUE(page.starts_with(html_page_start));
  EXPECT_NE(page.find("content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\""), std::string::npos);
  EXPECT_NE(page.find("@media (prefers-color-scheme: dark)"), std::string::npos);
  EXPECT_EQ(page.find("http:"), std::string::npos);
  EXPECT_EQ(page.find("https:"), std::string::npos);
  EXPECT_EQ(page.find("url("), std::string::npos);
}

// A table wider than the page ended at the edge as if it had no further columns: scroll bars hide on phones.
TEST(HtmlTest, a_table_that_is_cut_off_has_a_shadow_at_the_edge_and_long_words_in_its_cells_break) {
  const std::string page = html_page("title", "<p>text</p>");
  EXPECT_NE(page.find("linear-gradient(to left, var(--under) 1rem, transparent 2rem) local"), std::string::npos);
  EXPECT_NE(page.find("td { overflow-wrap: anywhere;"), std::string::npos);
  EXPECT_NE(page.find(".right { overflow-wrap: normal;"), std::string::npos);
}

// RFC 4648, 10.
TEST(HtmlTest, a_picture_is_base64) {
  const auto link = [](std::string_view text) {
    return png_link({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()})
        .substr(std::string_view("data:image/png;base64,").size());
  };
  EXPECT_EQ(link(""), "");
  EXPECT_EQ(link("f"), "Zg==");
  EXPECT_EQ(link("fo"), "Zm8=");
  EXPECT_EQ(link("foo"), "Zm9v");
  EXPECT_EQ(link("foob"), "Zm9vYg==");
  EXPECT_EQ(link("\xff\xfe\xfd"), "//79");
}

}  // namespace lockstep::html_test
