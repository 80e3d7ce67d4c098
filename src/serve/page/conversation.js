// The chat that is open: what was said, what is being answered, and how it is shown.
import { AnswerView } from "./answer.js";
import { newChat, saveChat } from "./chats.js";
import { byId, element } from "./elements.js";
import { isSharedSince } from "./load.js";
import { showLegend } from "./origins.js";
import { ask } from "./server.js";
import { openSettings, requestFields, settings } from "./settings.js";

const SAVE_MS = 1000; // an answer that comes is saved so often

const NO_ROOM = "The browser has no room for this chat. It stays here until the page is left; delete others under Chats.";

export class Conversation {
  // `onState` is called when an answer begins or ends, `onNotice` with what the user should know.
  constructor(chat, { onState, onNotice }) {
    this.onState = onState;
    this.onNotice = onNotice;
    this.running = null; // stops what runs
    this.open(chat);
  }

  get answers() {
    return this.chat.messages.filter((message) => message.role === "assistant");
  }

  open(chat) {
    this.stop();
    this.chat = chat;
    // The page was left while it came.
    for (const answer of this.answers) {
      if (!answer.finish && !answer.trouble) answer.finish = "stopped";
    }
    this.views = [];
    byId("chat").replaceChildren();
    for (const message of chat.messages) this.add(message);
    this.mark();
    byId("chat").scrollTop = byId("chat").scrollHeight;
  }

  isEmpty() {
    return this.chat.messages.length === 0;
  }

  stop() {
    this.running?.abort();
    this.running = null;
  }

  // ---- What is shown ----

  add(message) {
    if (message.role === "user") {
      const text = element("div", { className: "message user", textContent: message.content });
      byId("chat").append(text);
      return null;
    }
    const actions = {
      regenerate: () => this.regenerate(),
      compare: (view) => this.compare(view),
      isRunning: () => this.running !== null,
      openSettings,
    };
    const view = new AnswerView(message, actions);
    this.views.push(view);
    byId("chat").append(view.element);
    return view;
  }

  // Everything again, as the settings want it now.
  mark() {
    this.views.forEach((view, i) => {
      view.isLast = i === this.views.length - 1 && this.chat.messages.at(-1) === view.answer;
      view.show();
    });
    showLegend(this.answers);
    byId("legend").hidden = settings.view !== "tokens";
    byId("chat").querySelector(".empty")?.remove();
    if (!this.isEmpty()) return;
    byId("chat").append(element("div", { className: "empty" },
      element("h2", { textContent: "Ask something" }),
      element("p", { textContent: "Tokens are shaded by where they had been drafted. The model checks every one of them." }),
      element("p", { textContent: byId("keys").textContent })));
  }

  // Calls `change`, and stays at the end of the chat if it was there.
  following(change) {
    const chat = byId("chat");
    const isAtEnd = chat.scrollHeight - chat.scrollTop - chat.clientHeight < 80;
    change();
    if (isAtEnd) chat.scrollTop = chat.scrollHeight;
  }

  save(chat = this.chat) {
    this.savedAt = Date.now();
    if (!saveChat(chat)) this.onNotice(NO_ROOM);
  }

  // ---- What is asked ----

  // The messages before `end`, as a request has them: templates want speakers to take turns.
  messagesBefore(end, system) {
    const sent = system ? [{ role: "system", content: system }] : [];
    for (const { role, content } of this.chat.messages.slice(0, end)) {
      if (!content) continue;
      if (sent.at(-1)?.role === role) sent.at(-1).content += `\n\n${content}`;
      else sent.push({ role, content });
    }
    return sent;
  }

  bodyOf(answer, more = {}) {
    const { system, ...fields } = answer.request;
    return {
      messages: this.messagesBefore(this.chat.messages.indexOf(answer), system),
      stream: true, stream_options: { include_usage: true }, return_texts: true, ...fields, ...more,
    };
  }

  async say(text) {
    this.chat.messages.push({ role: "user", content: text });
    this.add(this.chat.messages.at(-1));
    await this.answer();
  }

  async regenerate() {
    if (this.running) return;
    const last = this.chat.messages.at(-1);
    if (last?.role === "assistant") {
      this.chat.messages.pop();
      this.views.pop().element.remove();
      byId("chat").focus({ preventScroll: true });
    }
    await this.answer();
  }

  async answer() {
    const request = { ...requestFields(), system: settings.system };
    const answer = { role: "assistant", content: "", reasoning: "", tokens: [], request };
    this.chat.messages.push(answer);
    const view = this.add(answer);
    this.mark();
    byId("chat").scrollTop = byId("chat").scrollHeight;
    await this.run(view, async (signal) => {
      const began = Date.now();
      const clock = { began: 0 };
      const onPart = (part) => this.addPart(view, part, clock);
      const onWait = (words) => this.following(() => view.say(words));
      const { timings, finish } = await ask(this.bodyOf(answer), { signal, onPart, onWait });
      Object.assign(answer, { timings, finish, isShared: isSharedSince(began) });
      completeTokens(answer);
    });
    byId("announcer").textContent = answer.trouble?.message ?? `Answer: ${answer.content}`;
    if (settings.compare && answer.timings && !answer.trouble && answer.finish !== "stopped") await this.compare(view);
  }

  addPart(view, part, clock) {
    const { answer } = view;
    answer.content += part.content;
    answer.reasoning += part.reasoning;
    answer.tokens.push(...part.tokens);
    // As the server counts: from the first token on.
    if (!clock.began && part.tokens.length) clock.began = performance.now();
    answer.seconds = clock.began ? (performance.now() - clock.began) / 1000 : 0;
    view.update((show) => this.following(show));
    if (Date.now() - this.savedAt > SAVE_MS) this.save();
  }

  // The same request, with drafts if there were none and without if there were.
  async compare(view) {
    if (this.running) return;
    const { answer } = view;
    const began = Date.now();
    const body = this.bodyOf(answer, { speculative: answer.request.speculative === false });
    const trouble = await this.run(view, async (signal) => {
      this.following(() => view.say("The same again, to compare …"));
      const { content, timings } = await ask(body, { signal, onWait: (words) => view.say(words) });
      answer.other = { timings, isSame: content === answer.content };
      answer.isShared ||= isSharedSince(began);
    }, { isAnswer: false });
    this.following(() => view.say(trouble ? `Not compared: ${trouble}` : ""));
    if (document.activeElement === document.body) view.focus();
  }

  // Runs `work` for a view until it is done or stopped. The trouble there was is shown with the answer,
  // or, if it is not about the answer, returned.
  async run(view, work, { isAnswer = true } = {}) {
    const { answer } = view;
    const { chat } = this;
    const running = new AbortController();
    this.running = running;
    this.onState();
    this.mark();
    view.setBusy(true);
    this.save();
    let words = "";
    try {
      await work(running.signal);
    } catch (error) {
      const isStopped = running.signal.aborted;
      words = isStopped ? "stopped." : error.message;
      if (isAnswer && isStopped) answer.finish = "stopped";
      else if (isAnswer) answer.trouble = { kind: error.kind ?? "page", message: error.message };
    }
    if (this.running === running) this.running = null;
    this.following(() => {
      view.words = "";
      view.setBusy(false);
      this.mark();
    });
    this.save(chat);
    this.onState();
    return words;
  }

  startNew() {
    this.open(newChat());
  }
}

// A stop text's beginning comes without tokens, in the end.
function completeTokens(answer) {
  const text = answer.tokens.map(([token]) => token).join("");
  if (answer.content.length > text.length && answer.content.startsWith(text)) {
    answer.tokens.push([answer.content.slice(text.length), ""]);
  }
}
