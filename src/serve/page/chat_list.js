// The dialog with the chats that the browser keeps.
import { deleteChat, listChats, openChat } from "./chats.js";
import { button, byId, element } from "./elements.js";

function entryOf({ id, title, time }, conversation) {
  const open = button(title || "(empty)", () => {
    byId("chats").close();
    if (id !== conversation.chat.id) conversation.open(openChat(id));
  }, { className: "open" });
  if (id === conversation.chat.id) open.setAttribute("aria-current", "true");
  const when = new Date(time);
  const shown = element("time", { dateTime: when.toISOString(), textContent: when.toLocaleDateString() });
  const remove = button("Delete", () => {
    if (remove.textContent === "Delete") {
      remove.textContent = "Really delete";
      remove.setAttribute("aria-label", `Really delete "${title}"`);
      return;
    }
    if (id === conversation.chat.id) {
      conversation.chat.isDeleted = true;
      conversation.startNew();
    }
    deleteChat(id);
    showChats(conversation);
    (byId("chat-list").querySelector("button") ?? byId("chats").querySelector("button.main")).focus();
  }, { "aria-label": `Delete "${title}"` });
  return element("li", {}, open, shown, remove);
}

function showChats(conversation) {
  const chats = listChats();
  const entries = chats.map((entry) => entryOf(entry, conversation));
  byId("chat-list").replaceChildren(...(entries.length ? entries : [element("li", { textContent: "There are none yet." })]));
}

export function setUpChatList(conversation) {
  byId("open-chats").addEventListener("click", () => {
    showChats(conversation);
    byId("chats").showModal();
  });
}
