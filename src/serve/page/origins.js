// Where a token can have come from: `origins` of an answer, and how the page calls them.
import { byId, element } from "./elements.js";

// Those with `isRare` are in the legend only where there are such tokens.
const ORIGINS = {
  "": { label: "not drafted", words: "not drafted: the model wrote it itself" },
  input: { label: "this chat", words: "drafted from the text of this chat" },
  datastore: { label: "datastore", words: "drafted from the datastore" },
  guess: { label: "guess", words: "drafted by guessing" },
  layers: { label: "own layers", words: "drafted by the model with layers left out" },
  draft_model: { label: "draft model", words: "drafted by a smaller model" },
  model: { label: "a model's draft", words: "drafted by a smaller model, or by this one with layers left out", isRare: true },
  prediction: { label: "prediction", words: "drafted from the prediction that came with the request", isRare: true },
  grammar: { label: "grammar", words: "the only token that the grammar allowed", isRare: true },
};

function classOf(origin) {
  if (!origin) return "";
  return origin in ORIGINS ? `from-${origin}` : "from-other";
}

export function tokenElement([text, origin]) {
  const words = ORIGINS[origin || ""]?.words ?? `drafted: ${origin}`;
  return element("span", { className: classOf(origin), title: words, textContent: text });
}

// What the shades mean, with how many tokens of the chat have each.
export function showLegend(answers) {
  const counts = new Map(Object.keys(ORIGINS).map((name) => [name, 0]));
  for (const answer of answers) {
    for (const [, origin] of answer.tokens ?? []) {
      const name = origin || "";
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  const isShown = ([name, n]) => n || !ORIGINS[name].isRare;
  const entries = [...counts].filter(isShown).map(([name, n]) => {
    const { label, words } = ORIGINS[name] ?? { label: name, words: `drafted: ${name}` };
    const mark = element("span", { className: classOf(name), title: words, textContent: label });
    return element("li", { className: n || !name ? "" : "absent" }, mark, n ? ` ${n}` : "");
  });
  byId("legend").replaceChildren(...entries);
}
