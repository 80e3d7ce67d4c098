// Elements, made in one line. Text goes in as text, never as markup.

export const byId = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

export function button(label, onclick, properties = {}) {
  return element("button", { type: "button", className: "small", textContent: label, onclick, ...properties });
}

// A button that copies what `text` returns, and says whether it did.
export function copyButton(text, label = "Copy") {
  const made = button(label, async () => {
    made.textContent = (await copy(text())) ? "Copied" : "Not copied: select the text";
    setTimeout(() => (made.textContent = label), 1500);
  });
  return made;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

// Over plain HTTP from another machine browsers have no clipboard for pages.
function copyBySelection(text) {
  const before = document.activeElement;
  const field = element("textarea", { value: text, className: "unseen" });
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  before?.focus();
  return isCopied;
}
