// Markdown as models write it: headings, lists, tables, quotes, code. What is none of these stays text,
// half of a block too, so that it can be shown while it comes.
import { copyButton, element } from "./elements.js";
import { inlineNodes } from "./markdown_inline.js";

const MOST_NESTED = 12;
const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const MARKER = /^( *)([-*+]|(\d{1,9})[.)])(?: +|$)/;
const ALIGNMENT = /^(:?)-+(:?)$/;

const isBlank = (line) => line.trim() === "";
const indentOf = (line) => line.length - line.trimStart().length;
const withoutIndent = (line, most) => line.slice(Math.min(indentOf(line), most));

function markerOf(line) {
  const found = RULE.test(line) ? null : MARKER.exec(line);
  return found && {
    indent: found[1].length,
    width: found[0].length,
    number: found[3] === undefined ? null : Number(found[3]),
    text: line.slice(found[0].length),
  };
}

// ---- Tables ----

function cellsOf(line) {
  const cells = [];
  let cell = "";
  const row = line.trim().replace(/^\|/, "");
  for (let i = 0; i < row.length; ++i) {
    if (row[i] === "\\" && row[i + 1] === "|") cell += row[++i];
    else if (row[i] === "|") cells.push(cell.trim()), (cell = "");
    else cell += row[i];
  }
  if (cell.trim()) cells.push(cell.trim());
  return cells;
}

// The classes of a table's columns, if one begins here.
function columnsAt(lines, at) {
  if (!lines[at].includes("|") || !lines[at + 1]?.includes("-")) return null;
  const marks = cellsOf(lines[at + 1]).map((cell) => ALIGNMENT.exec(cell));
  if (!marks.length || marks.includes(null) || cellsOf(lines[at]).length !== marks.length) return null;
  return marks.map(([, left, right]) => (right ? (left ? "centre" : "right") : ""));
}

function readTable(lines, at, columns) {
  const row = (line, name) => {
    const cells = cellsOf(line);
    return element("tr", {}, ...columns.map((className, i) => element(name, { className }, ...inlineNodes(cells[i] ?? ""))));
  };
  const body = element("tbody");
  let end = at + 2;
  for (; end < lines.length && lines[end].includes("|"); ++end) body.append(row(lines[end], "td"));
  const table = element("table", {}, element("thead", {}, row(lines[at], "th")), body);
  return { node: element("div", { className: "table", tabIndex: 0, role: "region", "aria-label": "Table" }, table), end };
}

// ---- Other blocks ----

function readFence(lines, at, [, mark, language]) {
  const indent = indentOf(lines[at]);
  const code = [];
  let end = at + 1;
  for (; end < lines.length; ++end) {
    const line = lines[end].trim();
    if (line.length >= mark.length && line === mark[0].repeat(line.length)) break;
    code.push(withoutIndent(lines[end], indent));
  }
  const text = code.join("\n");
  const head = element("div", {}, element("span", { textContent: language || "code" }), copyButton(() => text));
  const pre = element("pre", { tabIndex: 0, role: "region", "aria-label": "Code" }, element("code", { textContent: text }));
  return { node: element("div", { className: "code" }, head, pre), end: end + 1 };
}

function readHeading(lines, at, [whole, marks]) {
  let text = lines[at].slice(whole.length).trimEnd();
  const bare = text.replace(/#{1,9}$/, "");
  if (bare === "" || bare.endsWith(" ")) text = bare.trimEnd();
  // The page's own are h1 and h2.
  const name = `h${Math.min(6, marks.length + 2)}`;
  return { node: element(name, {}, ...inlineNodes(text)), end: at + 1 };
}

function readQuote(lines, at, depth) {
  const inner = [];
  let end = at;
  for (; end < lines.length && QUOTE.test(lines[end]); ++end) inner.push(lines[end].replace(QUOTE, ""));
  return { node: element("blockquote", {}, ...blockNodes(inner, depth + 1)), end };
}

// The lines of a list's item, from its marker on, and where they end.
function readItem(lines, at, marker, indent) {
  const inner = [marker.text];
  let end = at + 1;
  for (; end < lines.length; ++end) {
    const line = lines[end];
    if (isBlank(line)) {
      const next = lines[end + 1];
      if (next === undefined || isBlank(next) || indentOf(next) <= indent) break;
      inner.push("");
    } else if (indentOf(line) > indent) {
      inner.push(withoutIndent(line, marker.width));
    } else if (beginsBlock(lines, end)) {
      break;
    } else {
      inner.push(line);
    }
  }
  return { inner, end };
}

function readList(lines, at, first, depth) {
  const isOrdered = first.number !== null;
  const list = element(isOrdered ? "ol" : "ul");
  if (isOrdered && first.number !== 1) list.start = first.number;
  let end = at;
  for (let marker = first; marker && (marker.number !== null) === isOrdered; ) {
    const item = readItem(lines, end, marker, first.indent);
    const [head, ...others] = blockNodes(item.inner, depth + 1);
    const isParagraph = head?.nodeName === "P";
    list.append(element("li", {}, ...(isParagraph ? head.childNodes : head ? [head] : []), ...others));
    end = item.end;
    let next = end;
    while (next < lines.length && isBlank(lines[next])) ++next;
    marker = next < lines.length ? markerOf(lines[next]) : null;
    if (marker && marker.indent > first.indent + 3) marker = null;
    if (marker && (marker.number !== null) === isOrdered) end = next;
  }
  return { node: list, end };
}

function beginsBlock(lines, at) {
  const line = lines[at];
  if (FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line)) return true;
  if (columnsAt(lines, at)) return true;
  const marker = markerOf(line);
  return marker !== null && marker.text !== "";
}

function readParagraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && !isBlank(lines[end]) && !beginsBlock(lines, end)) ++end;
  const text = lines.slice(at, end).map((line) => line.trim()).join("\n");
  return { node: element("p", {}, ...inlineNodes(text)), end };
}

function readBlock(lines, at, depth) {
  const line = lines[at];
  if (depth > MOST_NESTED) return readParagraph(lines, at);
  const fence = FENCE.exec(line);
  if (fence) return readFence(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) return readHeading(lines, at, heading);
  if (RULE.test(line)) return { node: element("hr"), end: at + 1 };
  if (QUOTE.test(line)) return readQuote(lines, at, depth);
  const columns = columnsAt(lines, at);
  if (columns) return readTable(lines, at, columns);
  const marker = markerOf(line);
  return marker ? readList(lines, at, marker, depth) : readParagraph(lines, at);
}

function blockNodes(lines, depth) {
  const nodes = [];
  for (let at = 0; at < lines.length; ) {
    if (isBlank(lines[at])) {
      ++at;
      continue;
    }
    const { node, end } = readBlock(lines, at, depth);
    nodes.push(node);
    at = end;
  }
  return nodes;
}

export function markdownNodes(text) {
  return blockNodes(text.replaceAll("\r", "").replaceAll("\t", "    ").split("\n"), 0);
}

// Shows `text` in `container`. What is there already stays the element it is, so that a selection in it
// is not lost while more comes.
export function showMarkdown(container, text) {
  const nodes = markdownNodes(text);
  const old = [...container.childNodes];
  let kept = 0;
  while (kept < nodes.length && old[kept]?.isEqualNode(nodes[kept])) ++kept;
  for (const node of old.slice(kept)) node.remove();
  container.append(...nodes.slice(kept));
}
