// Chats as the browser keeps them: each on its own, and a list of them.
//
// A chat is {id, messages}, and `isDeleted` once it is; a message {role, content}, and of an answer also
//   reasoning   what the model thought, where it says so
//   tokens      [text, origin] of each
//   request     the fields it was asked with, and `system`
//   timings     what the server measured; where it could not say, `seconds` is what the page did
//   finish      "stop" or "length", or "stopped" by the user
//   isShared    the server answered others meanwhile
//   trouble     {kind, message}: what went wrong
//   other       {timings, isSame}: of the same request with or without drafts

import { forGood, forTab, readJson } from "./storage.js";

const LIST = "forerun.chats";
const CURRENT = "forerun.chat";
const nameOf = (id) => `forerun.chat.${id}`;
const TITLE_LENGTH = 60;

// {id, title, time} of each, the latest first.
export const listChats = () => readJson(LIST) ?? [];

export function newChat() {
  const chat = { id: `${Date.now().toString(36)}${Math.floor(Math.random() * 1e6).toString(36)}`, messages: [] };
  forTab.setItem(CURRENT, chat.id);
  return chat;
}

export function openChat(id) {
  const messages = readJson(nameOf(id));
  if (!Array.isArray(messages)) return newChat();
  forTab.setItem(CURRENT, id);
  return { id, messages };
}

// The one that this tab had, or the latest.
export function currentChat() {
  const id = forTab.getItem(CURRENT) ?? listChats()[0]?.id;
  return id ? openChat(id) : newChat();
}

// false: the browser has no room for it.
export function saveChat({ id, messages, isDeleted }) {
  if (!messages.length || isDeleted) return true;
  const others = listChats().filter((entry) => entry.id !== id);
  const title = messages[0].content.trim().slice(0, TITLE_LENGTH);
  try {
    forGood.setItem(nameOf(id), JSON.stringify(messages));
    forGood.setItem(LIST, JSON.stringify([{ id, title, time: Date.now() }, ...others]));
    return true;
  } catch {
    return false;
  }
}

export function deleteChat(id) {
  forGood.removeItem(nameOf(id));
  forGood.setItem(LIST, JSON.stringify(listChats().filter((entry) => entry.id !== id)));
}
