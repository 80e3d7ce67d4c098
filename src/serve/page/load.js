// How busy the server is, from its /metrics, while somebody looks.
import { byId } from "./elements.js";
import { getText } from "./server.js";

const SECONDS = 120; // that the graph shows
const HEIGHT = 40;
const LOST_MS = 3000;

const points = []; // {time, running, waiting, accepted}: one a second, the latest last
let before = null;
let isWanted = true;
let isOffered = true; // the server shows its metrics
let timer = 0;
let tell = () => {};

// A metric's value, summed over its labels.
function valueOf(text, name) {
  const lines = text.split("\n").filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

function addPoint(text) {
  const now = {
    drafted: valueOf(text, "llamacpp:spec_decode_num_draft_tokens_total"),
    accepted: valueOf(text, "llamacpp:spec_decode_num_accepted_tokens_total"),
  };
  const newlyDrafted = before ? now.drafted - before.drafted : 0;
  points.push({
    time: Date.now(),
    running: valueOf(text, "llamacpp:requests_processing"),
    waiting: valueOf(text, "llamacpp:requests_deferred"),
    accepted: newlyDrafted > 0 ? (now.accepted - before.accepted) / newlyDrafted : null,
  });
  if (points.length > SECONDS) points.shift();
  before = now;
}

// Steps from the right edge on: what is latest stands there.
function area(low, high, most) {
  const y = (value) => (HEIGHT * (1 - 0.95 * (value / most))).toFixed(1);
  const first = SECONDS - points.length;
  const top = points.map((point, i) => `V${y(high(point))}H${first + i + 1}`).join("");
  const bottom = points.map((point, i) => `V${y(low(point))}H${first + i}`).reverse().join("");
  return points.length ? `M${first} ${HEIGHT}${top}${bottom}Z` : "";
}

// From request to request: the server counts a request's drafts when it is over.
function acceptanceLine() {
  let path = "";
  points.forEach(({ accepted }, i) => {
    const x = SECONDS - points.length + i;
    const y = accepted === null ? "" : (HEIGHT * (0.97 - 0.92 * accepted)).toFixed(1);
    if (y) path += path ? `V${y}H${x + 1}` : `M${x} ${y}H${x + 1}`;
    else if (path) path += `H${x + 1}`;
  });
  return path;
}

function draw() {
  const most = Math.max(4, ...points.map((point) => point.running + point.waiting));
  const [running, waiting, accepted] = byId("load-graph").children;
  running.setAttribute("d", area(() => 0, (point) => point.running, most));
  waiting.setAttribute("d", area((point) => point.running, (point) => point.running + point.waiting, most));
  accepted.setAttribute("d", acceptanceLine());
  const now = points.at(-1);
  byId("load-running").textContent = `${now.running} running`;
  byId("load-waiting").textContent = `${now.waiting} waiting`;
  const latest = points.findLast((point) => point.accepted !== null);
  byId("load-accepted").textContent = latest ? `${Math.round(100 * latest.accepted)} % accepted` : "no drafts yet";
}

async function look() {
  clearTimeout(timer);
  timer = 0;
  if (document.hidden || !isWanted || !isOffered) return;
  let wait = 1000;
  try {
    addPoint(await getText("metrics"));
    draw();
    tell(null);
  } catch (error) {
    if (error.kind === "refused") isOffered = false;
    else tell(error);
    wait = LOST_MS;
    before = null;
  }
  byId("load").hidden = !isWanted || !isOffered || !points.length;
  clearTimeout(timer);
  timer = setTimeout(look, wait);
}

// `told` gets the error when the server does not answer, and null when it does.
export function setUpLoad(told) {
  tell = told;
  document.addEventListener("visibilitychange", () => document.hidden || look());
  look();
}

// Whether the server was seen answering more than one request since then.
export const isSharedSince = (time) => points.some((point) => point.time >= time && point.running > 1);

export function showLoad(wanted) {
  if (wanted === isWanted) return;
  isWanted = wanted;
  byId("load").hidden = !isWanted || !isOffered || !points.length;
  if (isWanted) look();
}
