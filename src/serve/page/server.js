// What is asked of the server, and its errors in words.
import { apiKey } from "./settings.js";

const RETRY_SECONDS = 2; // where a busy server does not say when to come again
const MOST_TRIES = 6;

export class ServerError extends Error {
  // `kind`: "key", "busy", "loading", "lost" or "refused".
  constructor(kind, message, retrySeconds = RETRY_SECONDS) {
    super(message);
    this.kind = kind;
    this.retrySeconds = retrySeconds;
  }
}

const LOST = "The server cannot be reached.";

async function errorOf(response) {
  const failure = await response.json().catch(() => ({}));
  const said = failure.error?.message ?? `the server answered with status ${response.status}`;
  if (response.status === 401) {
    return new ServerError("key", apiKey() ? "The server does not know this API key." : "The server asks for an API key.");
  }
  if (response.status === 503) {
    if (/loading/i.test(said)) return new ServerError("loading", "The model is still being loaded.");
    const seconds = Number(response.headers.get("Retry-After")) || RETRY_SECONDS;
    return new ServerError("busy", "The server has too many requests already.", seconds);
  }
  return new ServerError("refused", `The server refused: ${said}`);
}

async function send(path, { body, signal }) {
  const headers = {};
  if (apiKey()) headers.Authorization = `Bearer ${apiKey()}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    const method = body ? "POST" : "GET";
    response = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
  } catch (error) {
    throw signal?.aborted ? error : new ServerError("lost", LOST);
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

export const getJson = async (path, signal) => (await send(path, { signal })).json();

export async function getText(path, signal) {
  return (await send(path, { signal })).text();
}

// The events of a stream, which ends with [DONE] unless the connection is lost.
async function* events(path, body, signal) {
  const response = await send(path, { body, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    let read;
    try {
      read = await reader.read();
    } catch (error) {
      throw signal?.aborted ? error : new ServerError("lost", "The connection to the server was lost.");
    }
    if (read.done) throw new ServerError("lost", "The answer ended before it was complete.");
    const lines = (left + read.value).split("\n");
    left = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ")) continue;
      if (line === "data: [DONE]") return;
      const event = JSON.parse(line.slice(6));
      if (event.error) throw new ServerError("refused", `The server gave up: ${event.error.message}`);
      yield event;
    }
  }
}

async function readAnswer(body, signal, onPart) {
  const answer = { content: "", timings: null, finish: null };
  for await (const event of events("v1/chat/completions", body, signal)) {
    answer.timings = event.timings ?? answer.timings;
    const choice = event.choices?.[0];
    if (!choice) continue;
    answer.finish = choice.finish_reason ?? answer.finish;
    const part = { content: choice.delta.content ?? "", reasoning: choice.delta.reasoning_content ?? "", tokens: [] };
    (choice.texts ?? []).forEach((text, i) => part.tokens.push([text, choice.origins[i] ?? ""]));
    answer.content += part.content;
    onPart?.(part);
  }
  return answer;
}

function sleep(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
}

// The answer to a chat: its parts as they come, and in the end what the server says of it. A server that
// has no time is asked again; `onWait` gets what to tell meanwhile.
export async function ask(body, { signal, onPart, onWait }) {
  for (let tries = 1; ; ++tries) {
    try {
      return await readAnswer(body, signal, onPart);
    } catch (error) {
      const isTemporary = error.kind === "busy" || error.kind === "loading";
      if (!isTemporary || tries === MOST_TRIES) throw error;
      for (let seconds = Math.ceil(error.retrySeconds * tries); seconds > 0; --seconds) {
        onWait?.(`${error.message} Asking again in ${seconds} s.`);
        await sleep(1, signal);
      }
      onWait?.("");
    }
  }
}
