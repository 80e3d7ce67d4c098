// One answer on the page: its tokens or its text, how fast it came, and what can be done with it.
import { button, copyButton, element } from "./elements.js";
import { showMarkdown } from "./markdown.js";
import { tokenElement } from "./origins.js";
import { settings } from "./settings.js";
import { isDrafted, numbers, speeds } from "./speed.js";

export class AnswerView {
  // `actions`: regenerate(), compare(view), isRunning(), openSettings().
  constructor(answer, actions) {
    this.answer = answer;
    this.actions = actions;
    this.isBusy = false;
    this.isStale = false;
    this.words = "";
    this.body = element("div");
    this.below = element("div");
    this.element = element("article", { className: "message answer", "aria-label": "Answer" }, this.body, this.below);
  }

  setBusy(isBusy) {
    this.isBusy = isBusy;
    this.element.setAttribute("aria-busy", isBusy);
    this.show();
  }

  // What is being waited for, if anything.
  say(words) {
    this.words = words;
    this.show();
  }

  // Shows what is new at the next frame, within `around`.
  update(around) {
    if (this.isStale) return;
    this.isStale = true;
    requestAnimationFrame(() => {
      this.isStale = false;
      around(() => this.show());
    });
  }

  show() {
    if (settings.view === "tokens") this.showTokens();
    else this.showText();
    this.showBelow();
  }

  showTokens() {
    const { tokens, content } = this.answer;
    if (this.body.className !== "body tokens") this.body.replaceChildren();
    this.body.className = "body tokens";
    if (!tokens.length && content) this.body.textContent = content;
    else this.body.append(...tokens.slice(this.body.childElementCount).map(tokenElement));
  }

  showText() {
    if (this.body.className !== "body written") {
      this.thoughts = element("div");
      const summary = element("summary", { textContent: "Thoughts" });
      this.thoughtsBox = element("details", { className: "thoughts" }, summary, this.thoughts);
      this.text = element("div", { className: "written" });
      this.body.replaceChildren(this.thoughtsBox, this.text);
    }
    this.body.className = "body written";
    this.thoughtsBox.hidden = !this.answer.reasoning;
    this.thoughts.textContent = this.answer.reasoning;
    showMarkdown(this.text, this.answer.content);
  }

  showBelow() {
    const { answer } = this;
    const parts = [];
    if (answer.tokens.length || answer.timings) parts.push(element("ul", { className: "numbers" }, ...numbers(answer)));
    const isWaiting = this.isBusy && !answer.tokens.length;
    const words = this.words || (isWaiting ? "The server reads the prompt, or is busy with others …" : "");
    if (words) parts.push(element("p", { className: "hint", textContent: words }));
    if (answer.other) parts.push(speeds(answer));
    if (answer.trouble) parts.push(this.trouble());
    if (!this.isBusy) parts.push(this.actionBar());
    const focused = this.below.contains(document.activeElement) ? document.activeElement.textContent : null;
    this.below.replaceChildren(...parts);
    // A button that is there again keeps the focus.
    if (focused) [...this.below.querySelectorAll("button")].find((one) => one.textContent === focused)?.focus();
  }

  // Its last button had the focus before it was made again.
  focus() {
    this.below.querySelector(".actions button:last-child")?.focus();
  }

  trouble() {
    const { kind, message } = this.answer.trouble;
    const kept = this.answer.content ? " What came of the answer is kept." : " Your message is kept.";
    const box = element("div", { className: "trouble" }, element("p", { textContent: message + kept }));
    if (kind === "key") box.append(button("Enter a key", this.actions.openSettings, { className: "" }), " ");
    const disabled = this.actions.isRunning();
    if (this.isLast) box.append(button("Try again", this.actions.regenerate, { className: "", disabled }));
    return box;
  }

  actionBar() {
    const { answer } = this;
    const bar = element("div", { className: "actions" });
    const disabled = this.actions.isRunning();
    if (answer.content) bar.append(copyButton(() => answer.content));
    if (this.isLast && !answer.trouble) bar.append(button("Regenerate", this.actions.regenerate, { disabled }));
    if (answer.timings && answer.finish !== "stopped") {
      const other = isDrafted(answer) ? "plain decoding" : "drafts";
      bar.append(button(`Compare with ${other}`, () => this.actions.compare(this), { disabled }));
    }
    return bar;
  }
}
