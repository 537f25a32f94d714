// Keys. Everything on the page also works without this file.
"use strict";
(() => {
  const keys = document.getElementById("keys");
  const rows = () => [...document.querySelectorAll("[data-list] .row-link")];
  let going = false;

  const step = (by) => {
    const all = rows();
    const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(document.activeElement) + by))];
    if (next) next.focus();
  };

  document.addEventListener("keydown", (event) => {
    const writing = event.target.closest("input, textarea, select");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form) return event.target.form.requestSubmit();
    if (event.key === "Escape" && writing) return writing.blur();
    if (writing || event.ctrlKey || event.metaKey || event.altKey || event.repeat && !"jk".includes(event.key)) return;
    if (going) {
      going = false;
      const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (link) link.click();
      return;
    }
    const keyed = (document.querySelector("[data-first]") || document).querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    const turn = {h: "prev", l: "next"}[event.key];
    if (keyed) keyed.click();
    else if (event.key === "g") going = true;
    else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
    else if (turn) document.querySelector(`[rel="${turn}"]`)?.click();
    else if (event.key === "?") keys.showModal();
    else if (event.key === "/") {
      const field = document.querySelector("input[type=search]");
      if (field) { event.preventDefault(); field.focus(); field.select(); }
      else document.querySelector('[data-go="n"]').click();
    }
  });
})();
