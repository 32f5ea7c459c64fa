#include "report/page/html.hpp"

#include <fmt/format.h>

#include "base/text/printable.hpp"
#include "base/text/utf8.hpp"

namespace lockstep {
namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --back: #fff; --panel: #f6f7f9; --text: #1b1f24; --quiet: #59636e; --line: #d5dae1;
  --shadow: #0004; --c0: #1f6fb2; --c1: #c8501e; --c2: #22803f; --c3: #7a4fa3; --c4: #b0306a; --c5: #7d6300;
  --c6: #00747f; --c7: #5a5a5a; }
@media (prefers-color-scheme: dark) { :root { --back: #14181d; --panel: #1c2228; --text: #e4e8ed; --quiet: #9aa5b1;
  --line: #39424d; --shadow: #fff4; --c0: #6cb2f0; --c1: #f0915f; --c2: #6fce8d; --c3: #bb9de3; --c4: #f08ab8; --c5: #d8bb4a;
  --c6: #5fc9d4; --c7: #b5b5b5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 76rem; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .7rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .5rem; }
p { margin: .5rem 0; max-width: 46rem; } .quiet { color: var(--quiet); }
/* The shadow at an edge says that the content continues there. Where it ends, the first two gradients cover it. */
.scroll { --under: var(--back); overflow-x: auto; margin: .6rem 0; background:
  linear-gradient(to right, var(--under) 1rem, transparent 2rem) local,
  linear-gradient(to left, var(--under) 1rem, transparent 2rem) local,
  linear-gradient(to right, var(--shadow), transparent 1rem), linear-gradient(to left, var(--shadow), transparent 1rem); }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .3rem 1rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top;
  max-width: 34rem; }
td { overflow-wrap: anywhere; min-width: 7rem; } .right { overflow-wrap: normal; min-width: 0; } th { font-weight: 600; color: var(--quiet); }
td:first-child { font-weight: 600; white-space: nowrap; min-width: 0; } .right { text-align: right; }
details { margin: .8rem 0; } summary { cursor: pointer; font-weight: 600; }
code, pre { font: .85rem/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
pre { background: var(--panel); padding: .7rem .9rem; border-radius: 6px; white-space: pre-wrap; margin: .4rem 0; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
figure { margin: 0; padding: .8rem .8rem .4rem; background: var(--panel); border-radius: 8px; min-width: 0;
  break-inside: avoid; }
figcaption { font-weight: 600; } svg { display: block; width: 100%; height: auto; }
.legend { display: flex; flex-wrap: wrap; gap: 0 1rem; font-size: .85rem; color: var(--quiet); min-height: 1.4rem; }
.swatch { display: inline-block; width: 1.4rem; height: .6rem; margin-right: .35rem; vertical-align: baseline; }
svg text { fill: var(--quiet); font: 13px system-ui, "DejaVu Sans", sans-serif; }
svg .grid { stroke: var(--line); } svg .axis { stroke: var(--quiet); }
svg .mark { stroke-dasharray: 3 4; } svg .series { fill: none; stroke-linejoin: round; stroke-width: 2; }
svg .spread { stroke: none; opacity: .2; } svg .cell { fill: var(--c0); } svg .wrong { fill: var(--c1); }
svg .empty { fill: var(--panel); stroke: var(--line); stroke-width: .5; } svg text.count { fill: var(--text); }
svg .box { fill: var(--back); stroke: var(--line); } svg .share { fill: var(--c0); opacity: .2; }
svg .name { fill: var(--text); font-weight: 600; } svg .edge { fill: none; stroke: var(--quiet); stroke-width: 1.3; }
svg .value:hover .edge { stroke: var(--c1); stroke-width: 2.5; } .drawing { width: fit-content; max-width: 100%; }
.drawing .scroll { --under: var(--panel); max-height: 85vh; overflow: auto; }
.matrix { max-width: 46rem; }
.pictures { display: flex; flex-wrap: wrap; gap: .8rem; } .pictures figure { width: 8.6rem; font-size: .8rem; }
.pictures img { display: block; width: 100%; height: auto; image-rendering: pixelated; border-radius: 4px; }
@media (max-width: 600px) { td:first-child { white-space: normal; } th, td { padding-right: .7rem; } }
@media (min-width: 1400px) { body { max-width: 100rem; }
  .beside { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); gap: 0 2.5rem; } }
@media print { body { max-width: none; } .drawing .scroll { max-height: none; } figure { border: 1px solid var(--line); } }
)";

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string shortened(std::string_view text, std::size_t most) {
  std::size_t bytes = 0;
  for (std::size_t characters = 0; bytes < text.size(); ++characters) {
    if (characters == most) return fmt::format("{}…", text.substr(0, bytes));
    bytes += first_character(text.substr(bytes)).bytes;
  }
  return std::string(text);
}

std::string html_table(std::span<const TableColumn> columns, std::span<const std::vector<std::string>> rows) {
  const auto cell = [&](std::string_view tag, std::size_t column, std::string_view text) {
    const bool is_right = columns[column].align == TableColumn::Align::right;
    return fmt::format("<{0}{1}>{2}</{0}>", tag, is_right ? " class=\"right\"" : "", escaped(text));
  };
  std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (std::size_t i = 0; i < columns.size(); ++i) html += cell("th", i, columns[i].text);
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < columns.size(); ++i) html += cell("td", i, i < row.size() ? row[i] : "");
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string html_paragraph(std::string_view text) { return fmt::format("<p>{}</p>\n", escaped(text)); }

std::string html_section(std::string_view heading, std::string_view html) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", escaped(heading), html);
}

std::string html_beside(std::string_view left, std::string_view right) {
  return fmt::format("<div class=\"beside\">\n{}{}</div>\n", left, right);
}

std::string html_details(std::string_view text, std::string_view html) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(text), html);
}

std::string png_link(std::span<const std::uint8_t> file) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string link = "data:image/png;base64,";
  for (std::size_t i = 0; i < file.size(); i += 3) {
    const auto byte = [&](std::size_t j) -> std::uint32_t { return j < file.size() ? file[j] : 0; };
    const std::uint32_t three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (std::size_t digit = 0; digit < 4; ++digit) {
      link += i + digit > file.size() ? '=' : digits[three >> (18 - 6 * digit) & 63];
    }
  }
  return link;
}

std::string html_page(std::string_view title, std::string_view html) {
  constexpr std::string_view policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
  return fmt::format(
      "{}<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      html_page_start, policy, escaped(title), style, html);
}

}  // namespace lockstep
