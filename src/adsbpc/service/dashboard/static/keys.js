// Copies a new key.
(() => {
  "use strict";
  const made = document.getElementById("made");
  const copy = document.getElementById("copy");
  if (!made || !navigator.clipboard) {
    return;
  }
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(made.value);
    document.getElementById("said").textContent = "The key was copied.";
    copy.textContent = "Copied";
  });
})();
