// How fast an answer came, in words and bars.
import { element } from "./elements.js";

const count = (n, thing) => `${n} ${thing}${n === 1 ? "" : "s"}`;
const fixed = (value, n) => value.toFixed(n);
const speedOf = (timings) => timings.predicted_per_second;
const item = (...children) => element("li", {}, ...children);

// What a page can say while an answer comes, and of one that was stopped.
function measuredHere(answer) {
  const n = answer.tokens.length;
  const speed = answer.seconds > 0.05 && n > 1 ? `${fixed(n / answer.seconds, 1)} tokens/s, by this page's clock` : "";
  return [item(`${count(n, "token")} in ${fixed(answer.seconds ?? 0, 1)} s`), ...(speed ? [item(speed)] : [])];
}

function measuredThere(timings) {
  const { predicted_n: n, predicted_ms: ms, passes, draft_n: drafted, draft_n_accepted: accepted } = timings;
  const items = [item(`${count(n, "token")} in ${fixed(ms / 1000, 2)} s`)];
  if (speedOf(timings) > 0) items.push(item(element("strong", { textContent: `${fixed(speedOf(timings), 1)} tokens/s` })));
  if (passes > 0) items.push(item(`${fixed(n / passes, 2)} tokens per pass`));
  if (drafted > 0) items.push(item(`${accepted} of ${drafted} drafted accepted (${Math.round((100 * accepted) / drafted)} %)`));
  else items.push(item("no drafts"));
  const cached = timings.cache_n ? `, ${timings.cache_n} known already` : "";
  items.push(item(`prompt: ${count(timings.prompt_n, "token")} read in ${fixed(timings.prompt_ms / 1000, 2)} s${cached}`));
  return items;
}

const ENDS = { length: "ended by the limit of tokens", stopped: "stopped" };

export function numbers(answer) {
  const items = answer.timings ? measuredThere(answer.timings) : measuredHere(answer);
  if (answer.isShared) items.push(item("others were answered too"));
  if (ENDS[answer.finish]) items.push(item(ENDS[answer.finish]));
  return items;
}

export const isDrafted = (answer) => answer.request?.speculative !== false;

function bar(label, className, speed, most) {
  const filled = element("span", { className: "bar" });
  filled.style.width = `${(100 * speed) / most}%`;
  return element(
    "div", { className },
    element("span", { textContent: label }),
    element("span", { className: "track" }, filled),
    element("span", { className: "speed", textContent: `${fixed(speed, 1)} tokens/s` }),
  );
}

// Of an answer that was had both ways.
export function speeds(answer) {
  const both = [speedOf(answer.timings), speedOf(answer.other.timings)];
  const [drafted, plain] = isDrafted(answer) ? both : both.reverse();
  const most = Math.max(drafted, plain, 1e-9);
  const times = plain > 0 ? `Drafts made it ${fixed(drafted / plain, 2)} times as fast` : "Too short to compare";
  const texts = answer.other.isSame ? "the text is the same" : "the texts differ";
  return element(
    "div", { className: "speeds" },
    bar("with drafts", "drafted", drafted, most),
    bar("plain decoding", "plain", plain, most),
    element("p", { textContent: `${times}; ${texts}.` }),
  );
}
