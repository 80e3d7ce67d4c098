// Markdown within a line: code, emphasis, links. Makes nodes, so that no text of a model is ever markup.
import { element } from "./elements.js";

const MOST_NESTED = 8;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}_]/u;
const SAFE_LINK = /^(https?:\/\/|mailto:)/i;
const BARE_LINK = /https?:\/\/[^\s<>"`]+/iy;
const LINE_BREAK = /<br\s*\/?>/iy;
const POINTED_LINK = /<(https?:\/\/[^\s<>]+)>/iy;
const LINK_TARGET = /\(\s*<?([^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)>?(?:\s+"[^"\n]*")?\s*\)/y;

const isSafe = (address) => SAFE_LINK.test(address) && URL.canParse(address);
const isSpace = (c) => c === undefined || /\s/.test(c);

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

// Others' pages open beside this one, and are not told where the click came from.
function link(address, children) {
  return element("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

function readEscape(text, at) {
  const next = text[at + 1];
  return next && PUNCTUATION.test(next) ? { nodes: [next], end: at + 2 } : null;
}

function readCode(text, at) {
  let end = at;
  while (text[end] === "`") ++end;
  const mark = text.slice(at, end);
  for (let close = text.indexOf(mark, end); close >= 0; close = text.indexOf(mark, close)) {
    let after = close;
    while (text[after] === "`") ++after;
    if (after - close === mark.length) {
      let code = text.slice(end, close).replaceAll("\n", " ");
      if (/^ .*[^ ].* $/.test(code)) code = code.slice(1, -1);
      return { nodes: [element("code", { textContent: code })], end: after };
    }
    close = after;
  }
  return { nodes: [mark], end };
}

const EMPHASIS = { 1: ["em"], 2: ["strong"], 3: ["strong", "em"] };

// Whether the mark at `close` can end an emphasis.
function isClosing(text, close, mark) {
  if (isSpace(text[close - 1])) return false;
  const isPartOfLonger = text[close - 1] === mark[0] || text[close + mark.length] === mark[0];
  if (isPartOfLonger && mark.length < 3) return false;
  return mark[0] !== "_" || !WORD.test(text[close + mark.length] ?? "");
}

function readEmphasis(text, at, state) {
  let end = at;
  while (text[end] === text[at]) ++end;
  const mark = text.slice(at, end);
  const isStrike = text[at] === "~";
  const isOpening = isStrike ? mark.length === 2 : mark.length <= 3;
  const isWithinWord = text[at] === "_" && WORD.test(text[at - 1] ?? "");
  if (isOpening && !isSpace(text[end]) && !isWithinWord && !state.unclosed.has(mark)) {
    for (let close = text.indexOf(mark, end + 1); close >= 0; close = text.indexOf(mark, close + 1)) {
      if (!isClosing(text, close, mark)) continue;
      const names = isStrike ? ["del"] : EMPHASIS[mark.length];
      const inner = inlineNodes(text.slice(end, close), state.depth + 1);
      const nodes = names.reduceRight((within, name) => [element(name, {}, ...within)], inner);
      return { nodes, end: close + mark.length };
    }
    // None further on either: they are not looked for again.
    state.unclosed.add(mark);
  }
  return { nodes: [mark], end };
}

function readLink(text, at, state) {
  let level = 0;
  let close = at;
  for (; close < text.length; ++close) {
    if (text[close] === "\\") ++close;
    else if (text[close] === "[") ++level;
    else if (text[close] === "]" && --level === 0) break;
  }
  if (close >= text.length) state.hasNoLinks = true;
  const target = close < text.length && matchAt(LINK_TARGET, text, close + 1);
  if (!target || !isSafe(target[1])) return null;
  const label = inlineNodes(text.slice(at + 1, close), state.depth + 1);
  return { nodes: [link(target[1], label.length ? label : [target[1]])], end: LINK_TARGET.lastIndex };
}

// Nothing is loaded from elsewhere: an image is a link to it.
function readImage(text, at, state) {
  return text[at + 1] === "[" ? readLink(text, at + 1, state) : null;
}

function readBareLink(text, at) {
  if (WORD.test(text[at - 1] ?? "")) return null;
  const found = matchAt(BARE_LINK, text, at);
  if (!found) return null;
  const address = found[0].replace(/[.,;:!?*_~'\])]{1,9}$/, "");
  return isSafe(address) ? { nodes: [link(address, [address])], end: at + address.length } : null;
}

function readPointed(text, at) {
  if (matchAt(LINE_BREAK, text, at)) return { nodes: [element("br")], end: LINE_BREAK.lastIndex };
  const found = matchAt(POINTED_LINK, text, at);
  return found && isSafe(found[1]) ? { nodes: [link(found[1], [found[1]])], end: POINTED_LINK.lastIndex } : null;
}

const READERS = {
  "\\": readEscape,
  "`": readCode,
  "*": readEmphasis,
  _: readEmphasis,
  "~": readEmphasis,
  "[": (text, at, state) => (state.hasNoLinks ? null : readLink(text, at, state)),
  "!": readImage,
  h: readBareLink,
  "<": readPointed,
  "\n": (_, at) => ({ nodes: [element("br")], end: at + 1 }),
};

// Nodes and strings, for append().
export function inlineNodes(text, depth = 0) {
  if (depth > MOST_NESTED) return [text];
  const state = { depth, unclosed: new Set(), hasNoLinks: false };
  const nodes = [];
  let plain = "";
  for (let at = 0; at < text.length; ) {
    const found = READERS[text[at]]?.(text, at, state);
    if (!found) {
      plain += text[at++];
      continue;
    }
    if (plain) nodes.push(plain);
    plain = "";
    nodes.push(...found.nodes);
    at = found.end;
  }
  if (plain) nodes.push(plain);
  return nodes;
}
