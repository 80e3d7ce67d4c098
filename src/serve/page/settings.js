// What the user can choose. It is kept in the browser, the key only as long as the tab.
import { byId, element } from "./elements.js";
import { forGood, forTab, readJson } from "./storage.js";

const STORED = "forerun.settings";
const STORED_KEY = "forerun.key";
const DEFAULTS = {
  system: "", temperature: "", top_k: "", top_p: "", min_p: "", seed: "", max_tokens: "",
  speculative: "", compare: false, show_load: true, theme: "", view: "tokens",
};
const NUMBERS = ["temperature", "top_k", "top_p", "min_p", "max_tokens"];

export const settings = { ...DEFAULTS, ...readJson(STORED) };
let onChange = () => {};

function save() {
  try {
    forGood.setItem(STORED, JSON.stringify(settings));
  } catch {
    // Where chats take all the room, they hold until the page is left.
  }
  showTheme();
  onChange();
}

function showTheme() {
  if (settings.theme) document.documentElement.dataset.theme = settings.theme;
  else delete document.documentElement.dataset.theme;
}

let key = forTab.getItem(STORED_KEY) ?? "";
export const apiKey = () => key;

function setKey(value) {
  key = value.trim();
  forTab.setItem(STORED_KEY, key);
  onChange();
}

const fields = () => Object.keys(DEFAULTS).filter((name) => byId(name)?.matches("input, select, textarea"));
const valueOf = (field) => (field.type === "checkbox" ? "checked" : "value");

function showFields() {
  for (const name of fields()) byId(name)[valueOf(byId(name))] = settings[name];
  byId("key").value = key;
  for (const choice of document.getElementsByName("view")) choice.checked = choice.value === settings.view;
}

// Calls `changed` after every change.
export function setUpSettings(changed) {
  onChange = changed;
  showMethods("", []);
  showFields();
  for (const name of fields()) {
    const field = byId(name);
    field.addEventListener("change", () => {
      if (field.validity.valid) settings[name] = field[valueOf(field)];
      save();
    });
  }
  for (const choice of document.getElementsByName("view")) {
    choice.addEventListener("change", () => {
      settings.view = choice.value;
      save();
    });
  }
  byId("key").addEventListener("change", () => setKey(byId("key").value));
  byId("reset").addEventListener("click", () => {
    Object.assign(settings, DEFAULTS);
    setKey("");
    save();
    showFields();
  });
  byId("open-settings").addEventListener("click", openSettings);
}

export function openSettings() {
  showFields();
  byId("settings").showModal();
}

function showMethods(usual, methods) {
  const option = (value, textContent) => element("option", { value, textContent });
  const others = methods.filter(({ name }) => name !== "none");
  byId("speculative").replaceChildren(
    option("", usual ? `as the server does: ${usual}` : "as the server does"),
    option("none", "none: plain decoding"),
    ...others.map(({ name, summary }) => option(name, `${name}: ${summary}`)),
  );
  byId("speculative").value = settings.speculative;
  if (byId("speculative").selectedIndex < 0) {
    byId("speculative").append(option(settings.speculative, settings.speculative));
    byId("speculative").value = settings.speculative;
  }
}

// What the server has where nothing is chosen.
export function showServersValues(props) {
  const usual = props.default_generation_settings.params;
  for (const name of NUMBERS) {
    const value = usual[name];
    byId(name).placeholder = name === "max_tokens" && value < 0 ? "no limit" : Number(value.toPrecision(4));
  }
  showMethods(props.speculation, props.speculation_methods ?? []);
}

// The fields of a request that the settings stand for. It always has a seed, so that the answer can be
// had again.
export function requestFields() {
  const result = { seed: settings.seed === "" ? Math.floor(Math.random() * 2 ** 31) : Number(settings.seed) };
  for (const name of NUMBERS) {
    if (settings[name] !== "") result[name] = Number(settings[name]);
  }
  if (settings.speculative) result.speculative = settings.speculative === "none" ? false : settings.speculative;
  return result;
}
