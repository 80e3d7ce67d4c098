// What the browser keeps: for good, or as long as the tab. Where it is told to keep nothing, the page does
// until it is left.

function storage(open) {
  try {
    return open();
  } catch {
    const kept = new Map();
    return {
      getItem: (name) => kept.get(name) ?? null,
      setItem: (name, value) => kept.set(name, value),
      removeItem: (name) => kept.delete(name),
    };
  }
}

export const forGood = storage(() => localStorage);
export const forTab = storage(() => sessionStorage);

// null: there is none, or none that makes sense.
export function readJson(name) {
  try {
    return JSON.parse(forGood.getItem(name));
  } catch {
    return null;
  }
}
