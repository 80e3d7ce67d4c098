// How the page of `bench spec` looks: light and dark, narrow and wide, on paper.
#pragma once

#include <string_view>

namespace forerun {

// The colours of s0 to s8 and of the sources of tokens differ for colour-blind readers as
// well, mostly by lightness; shapes and underlines say the same without any colour.
constexpr std::string_view kSpecPageStyle = R"(
:root { color-scheme: light dark;
  --page: #fff; --ink: #1b1f24; --soft: #57606a; --line: #d7dce1; --panel: #f5f7f9;
  --plain: #6e7781; --c0: #0063a6; --c1: #d55e00; --c2: #0a9e73; --c3: #cf6fae; --c4: #6b5200;
  --c5: #2a1a78; --c6: #3f9bd4; --c7: #9c1f4f; --c8: #24292e;
  --input: #c4e0f8; --datastore: #fbcb88; --guess: #e6f7bb; --layers: #cfc4f3;
  --draft-model: #e6a9d4; }
@media screen and (prefers-color-scheme: dark) { :root {
  --page: #14171b; --ink: #e4e8ec; --soft: #9aa4af; --line: #343b43; --panel: #1d2227;
  --plain: #98a2ad; --c0: #3f97dd; --c1: #f0803c; --c2: #35c9a0; --c3: #efacd6; --c4: #efdc6a;
  --c5: #6f5fe0; --c6: #b3e6fb; --c7: #b8436f; --c8: #8b939b;
  --input: #17507f; --datastore: #8f5600; --guess: #3f4d0a; --layers: #48388f;
  --draft-model: #7d2b66; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 68rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: .95rem; margin: 0 0 .25rem; }
p { margin: .5rem 0; max-width: 46rem; }
.lead { font-size: 1.1rem; max-width: none; }
.note { color: var(--soft); font-size: .875rem; }
.scroll { overflow-x: auto; background:
  linear-gradient(to left, var(--page) 1rem, transparent) right / 2.5rem 100% no-repeat local,
  linear-gradient(to left, var(--line), transparent) right / 1rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; line-height: 1.25; }
.methods { width: 100%; }
.methods th:first-child { text-align: left; position: sticky; left: 0; background: var(--page);
  padding-left: 0; }
.methods tbody th { font-weight: 600; white-space: normal; min-width: 6rem; max-width: 16rem; }
.setting th, .setting td { text-align: left; white-space: normal; vertical-align: top; }
.setting th { color: var(--soft); font-weight: 600; padding-left: 0; white-space: nowrap; }
.panels { display: grid; gap: 1.25rem 1.5rem; margin: 1rem 0; align-items: end;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 18.5rem), 1fr)); }
.panels.two { grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); }
figure { margin: 0; max-width: 30rem; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; font-size: 12px; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; margin: .75rem 0;
  list-style: none; font-size: .9rem; }
.legend li { min-width: 0; }
.key { width: 24px; height: 12px; margin-right: .4rem; }
.ink { fill: var(--ink); }
.grid { stroke: var(--line); }
.axis { stroke: var(--soft); }
.rule { stroke: var(--ink); stroke-dasharray: 4 3; }
.whisker { fill: none; stroke: var(--ink); stroke-width: 1.3; }
.halo { fill: none; stroke: var(--page); stroke-width: 4; }
.bar { fill: currentColor; }
.line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
.mark { fill: currentColor; stroke: currentColor; stroke-width: 1.4; }
.hollow { fill: var(--page); }
.dot { fill: currentColor; fill-opacity: .3; }
.plain { color: var(--plain); }
.inked { color: var(--ink); }
.s0 { color: var(--c0); } .s1 { color: var(--c1); } .s2 { color: var(--c2); } .s3 { color: var(--c3); }
.s4 { color: var(--c4); } .s5 { color: var(--c5); } .s6 { color: var(--c6); } .s7 { color: var(--c7); }
.s8 { color: var(--c8); }
.sample { background: var(--panel); padding: 1rem; border-radius: 4px; white-space: pre-wrap;
  line-height: 1.75; }
mark { color: inherit; padding: .1em 0; border-bottom: 2px solid var(--soft);
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
mark.input { background: var(--input); }
mark.datastore { background: var(--datastore); border-bottom-style: dashed; }
mark.guess { background: var(--guess); border-bottom-style: dotted; }
mark.layers { background: var(--layers); border-bottom-style: double; border-bottom-width: 3px; }
mark.draft-model { background: var(--draft-model); border-bottom-style: double;
  border-bottom-width: 3px; }
pre { background: var(--panel); padding: .75rem 1rem; border-radius: 4px; white-space: pre-wrap;
  font-size: .875rem; }
@media print {
  body { max-width: none; padding: 0; font-size: 11pt; }
  .scroll { overflow: visible; background: none; }
  table { font-size: 8pt; } th, td { padding: .2rem .3rem; }
  h2, h3 { break-after: avoid; } tr, pre { break-inside: avoid; }
  .bar, .whisker, svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
)";

}  // namespace forerun
