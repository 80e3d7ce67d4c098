// The page: its keys and buttons, and what it knows of the server.
import { setUpChatList } from "./chat_list.js";
import { currentChat } from "./chats.js";
import { Conversation } from "./conversation.js";
import { button, byId } from "./elements.js";
import { setUpLoad, showLoad } from "./load.js";
import { getJson } from "./server.js";
import { apiKey, openSettings, setUpSettings, settings, showServersValues } from "./settings.js";
import { forTab } from "./storage.js";

const STORED_TEXT = "forerun.text"; // what is being written
const RETRY_MS = 2000;

// ---- The notice above the chat ----

function notify(words, ...more) {
  if (byId("notice").firstChild?.textContent === words) return;
  byId("notice").replaceChildren(...(words ? [words, ...more] : []));
}

function notifyOf(error) {
  if (!error) return notify("");
  if (error.kind === "key") return notify(error.message, button("Enter a key", openSettings, { className: "" }));
  const isWaiting = error.kind === "lost" || error.kind === "loading" || error.kind === "busy";
  return notify(isWaiting ? `${error.message} Trying again …` : error.message);
}

// ---- The server ----

let isKnown = false;
let timer = 0;

// Asks the server what it is until it says so.
async function getToKnow() {
  clearTimeout(timer);
  try {
    const props = await getJson("props");
    isKnown = true;
    byId("model").textContent = props.model_alias;
    document.title = `${props.model_alias} · forerun`;
    showServersValues(props);
    notifyOf(null);
  } catch (error) {
    notifyOf(error);
    if (error.kind !== "key") timer = setTimeout(getToKnow, RETRY_MS);
  }
}

let wasLost = false;

// What the load's polling finds out on the way: another server may be there after a while.
function onServer(error) {
  if (!isKnown) return;
  if (error) notifyOf(error);
  else if (wasLost) getToKnow();
  wasLost = Boolean(error);
}

// ---- The composer ----

const conversation = new Conversation(currentChat(), { onState: showState, onNotice: notify });

function showState() {
  byId("send").textContent = conversation.running ? "Stop" : "Send";
}

function grow() {
  const field = byId("text");
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
  forTab.setItem(STORED_TEXT, field.value);
}

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  if (conversation.running) return conversation.stop();
  const text = byId("text").value.trim();
  if (!text) return;
  byId("text").value = "";
  grow();
  conversation.say(text);
});
byId("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!conversation.running) byId("composer").requestSubmit();
});
byId("text").addEventListener("input", grow);
byId("new-chat").addEventListener("click", () => {
  conversation.startNew();
  byId("text").focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
  conversation.stop();
});
// What came until now is not lost with the page.
addEventListener("pagehide", () => {
  conversation.stop();
  conversation.save();
});

// ---- Beginning ----

let shown = { key: apiKey(), view: settings.view };
setUpSettings(() => {
  showLoad(settings.show_load);
  if (shown.key !== apiKey()) getToKnow();
  if (shown.view !== settings.view) conversation.mark();
  shown = { key: apiKey(), view: settings.view };
});
setUpChatList(conversation);
byId("text").value = forTab.getItem(STORED_TEXT) ?? "";
grow();
showLoad(settings.show_load);
getToKnow();
setUpLoad(onServer);
