// What the wizard adds to plain HTML: says whether the draft is saved, copies statements, opens the drawer of columns.
"use strict";

(() => {
  // --- saved, saving, not saved ---
  function isSave(event) {
    const asked = event.detail.requestConfig;
    return Boolean(asked && asked.verb === "post" && document.getElementById("draft-status"));
  }
  function status(text, isBad) {
    const item = document.getElementById("draft-status");
    item.textContent = text;
    item.classList.toggle("is-bad", Boolean(isBad));
  }
  let pressed = null;
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[type=submit]");
    if (button) pressed = button;
  }, true);
  // A press may wait for a save that is under way. HTMX forgets the button if the focus leaves it meanwhile.
  document.addEventListener("htmx:configRequest", (event) => {
    const { elt, parameters } = event.detail;
    if (pressed && elt === pressed.form && pressed.name && !parameters[pressed.name]) parameters[pressed.name] = pressed.value;
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    // While another tab's version waits for a decision nothing is saved by itself: the panel's buttons must stay in place.
    const isUndecided = document.querySelector("#draft-conflict .notice") && event.detail.elt.tagName !== "FORM";
    if (isSave(event) && isUndecided) { event.preventDefault(); return; }
    if (isSave(event)) status("Saving…");
    // What is typed is saved by requests of its own. One of them may go out between the button and its form.
    if (event.detail.elt.tagName !== "FORM") return;
    if (pressed && pressed.isConnected && pressed.dataset.busy) wait(event.detail.elt, pressed);
    pressed = null;
  });
  // What takes seconds answers with the form as it was sent: what is typed or pressed meanwhile would be lost, so nothing can be.
  let waiting = null;
  function hold(form, isHeld) {
    for (const part of form.querySelectorAll(".card-pad, .report-table, .with-action, [value=accept-all]")) part.inert = isHeld;
  }
  function wait(form, button) {
    const label = button.querySelector("span");
    waiting = { form, label, text: label.textContent };
    label.textContent = button.dataset.busy;
    hold(form, true);
  }
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!waiting || event.detail.elt !== waiting.form) return;
    waiting.label.textContent = waiting.text;
    hold(waiting.form, false);
    waiting = null;
  });
  for (const name of ["htmx:sendError", "htmx:responseError"]) {
    document.addEventListener(name, (event) => { if (isSave(event)) status("Not saved", true); });
  }

  // --- another kind of connector: its fields are on the page already, so nothing typed waits for an answer ---
  function isUntouched(field, asMade) {
    if (field.type === "checkbox") return field.checked === asMade.checked;
    const isKept = field.type === "password" && field.value === field.defaultValue; // of the other kind's account
    return isKept || field.value === asMade.value;
  }
  function carry(field, to) {
    if (field.type === "checkbox") to.checked = field.checked;
    else if (to.tagName !== "SELECT" || [...to.options].some((option) => option.value === field.value)) to.value = field.value;
  }
  // An answer that is under way tells of the fields before: unseen places for it, since without one HTMX logs an error.
  function late(before, made) {
    const box = document.createElement("div");
    box.hidden = true;
    for (const { id } of before.querySelectorAll("[id^=help-]")) {
      if (!made.querySelector(`[id="${id}"]`)) box.append(Object.assign(document.createElement("div"), { id }));
    }
    return box;
  }
  function changeKind(form, kind) {
    const grid = form.querySelector("[data-kind]");
    const before = document.getElementById(`kind-${grid.dataset.kind}`).content;
    const made = document.getElementById(`kind-${kind}`).content.cloneNode(true);
    for (const to of made.querySelectorAll("[name]")) {
      const field = grid.querySelector(`[name="${to.name}"]`);
      const asMade = before.querySelector(`[name="${to.name}"]`);
      if (field && asMade && !isUntouched(field, asMade)) carry(field, to);
    }
    grid.replaceChildren(made, late(before, made));
    grid.dataset.kind = kind;
    for (const note of form.querySelectorAll("[data-of-kind]")) note.hidden = note.dataset.ofKind !== kind;
    form.querySelector(".card-result").replaceChildren();
    grid.dispatchEvent(new Event("change", { bubbles: true })); // saves
  }
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-kind-choice]")) changeKind(event.target.form, event.target.value);
  });

  // --- fields that mean nothing beside the others are out of sight, unless somebody filled them in ---
  function isMeant(grid, field) {
    return Object.entries(JSON.parse(field.dataset.where)).every(([name, begins]) => {
      const said = grid.querySelector(`[name="${name}"]`).value.trim().toLowerCase();
      return begins.some((text) => said.startsWith(text));
    });
  }
  function sift() {
    const grid = document.querySelector("[data-kind]");
    const made = grid && document.getElementById(`kind-${grid.dataset.kind}`);
    if (!made) return;
    for (const field of grid.querySelectorAll("[data-where]")) {
      const input = field.querySelector("[name]");
      const asMade = made.content.querySelector(`[name="${input.name}"]`);
      field.hidden = !isMeant(grid, field) && !field.classList.contains("has-error") && isUntouched(input, asMade);
    }
    for (const heading of grid.querySelectorAll(".field-group")) {
      let next = heading.nextElementSibling;
      while (next && next.hidden && next.matches(".field")) next = next.nextElementSibling;
      heading.hidden = !next || !next.matches(".field");
    }
  }
  for (const name of ["input", "change", "htmx:afterSettle"]) document.addEventListener(name, sift);

  // --- fields are checked as they are left ---
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    const reported = event.target;
    const field = reported.id && reported.id.startsWith("help-") && reported.closest(".field, .option");
    if (!field) return;
    const isWrong = Boolean(reported.querySelector(".field-error"));
    field.classList.toggle("has-error", isWrong);
    const input = field.querySelector("input, select, textarea");
    if (isWrong) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  });

  // --- copying ---
  function dress() {
    const icon = document.querySelector("#copy-icon");
    if (!icon) return;
    for (const code of document.querySelectorAll(".reported code:not(.copies)")) {
      if (!code.textContent.trim().endsWith(";")) continue;
      code.classList.add("copies");
      const button = document.createElement("button");
      button.type = "button";
      button.className = "code-copy";
      button.setAttribute("aria-label", `Copy ${code.textContent}`);
      button.append(icon.content.cloneNode(true));
      code.after(button);
    }
  }

  // --- how many are ticked, also on other pages of a list; columns: searched, and ticked all at once, as far as they are seen ---
  function count(form, name) {
    const item = form && form.querySelector(`[data-counts="${name}"]`);
    if (item) item.textContent = Number(item.dataset.besides) + form.querySelectorAll(`[name="${name}"]:checked`).length;
  }
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-searches-columns]")) return;
    const text = event.target.value.trim().toLowerCase();
    const form = event.target.form;
    const rows = [...form.querySelector(".columns-table").tBodies[0].rows];
    for (const row of rows) row.hidden = !row.querySelector("label").textContent.toLowerCase().includes(text);
    form.querySelector(".columns-none").hidden = rows.some((row) => !row.hidden);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("[data-searches-columns]")) event.preventDefault(); // it would save
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-ticks]");
    if (!button) return;
    for (const box of button.form.querySelectorAll("tr:not([hidden]) [name=columns]:enabled")) box.checked = button.dataset.ticks === "true";
    document.getElementById("which-some").checked = true;
    count(button.form, "columns");
  });
  document.addEventListener("change", (event) => {
    const radio = document.getElementById(event.target.dataset.checks || "");
    if (radio) radio.checked = true;
    count(event.target.form, event.target.name);
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    const drawer = event.detail.target;
    if (drawer.id === "drawer") count(drawer.querySelector("form"), "columns");
    if (drawer.id === "drawer" && drawer.showModal && drawer.firstElementChild && !drawer.open) drawer.showModal();
    dress();
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    // The answer of *Test connection* stands at the foot of a long form, maybe below the window's edge.
    const reported = event.target.querySelector && event.target.querySelector(".card-result .notice");
    if (reported && event.detail.requestConfig && event.detail.requestConfig.verb === "post") reported.scrollIntoView({ block: "nearest" });
  });
  document.addEventListener("columnsSaved", () => document.getElementById("drawer").close());

  function start() {
    dress();
    sift();
    for (const form of document.forms) count(form, "columns");
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
