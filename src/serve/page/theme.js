// The theme that was chosen, before anything is drawn.
"use strict";
try {
  const theme = JSON.parse(localStorage.getItem("forerun.settings"))?.theme;
  if (theme) document.documentElement.dataset.theme = theme;
} catch {
  // As the system has it.
}
