// What pages add to plain HTML: toasts, dialogs, relative times, and polls that rest while unseen.
"use strict";

(() => {
  const POLL_STALE_MS = 20000;
  const POLL_TIMEOUT_MS = 15000;
  const LEAVING_MS = 60000;
  const TOAST_MS = 6000;

  document.addEventListener("htmx:configRequest", (event) => {
    const token = document.body.dataset.csrf;
    if (token) event.detail.headers["X-CSRFToken"] = token;
    if (isPoll(event)) event.detail.timeout = POLL_TIMEOUT_MS;
  });

  // --- toasts ---
  function toast(text, level) {
    const template = document.getElementById("toast-template");
    const box = document.getElementById("toasts");
    if (!template || !box) return;
    const item = template.content.firstElementChild.cloneNode(true);
    item.classList.add(`is-${level || "info"}`);
    item.querySelector("[data-toast-text]").textContent = text;
    box.append(item);
    armToast(item);
  }
  function armToast(item) {
    item.querySelector("button").addEventListener("click", () => item.remove());
    if (!item.classList.contains("is-error")) setTimeout(() => item.remove(), TOAST_MS);
  }
  document.addEventListener("toast", (event) => toast(event.detail.text, event.detail.level));
  document.addEventListener("htmx:responseError", (event) => {
    const status = event.detail.xhr.status;
    if (isPoll(event)) return;
    if (status === 401 || status === 403) toast("You are signed out, or may not do this. Load the page again.", "error");
    else if (status === 503) toast("Not now: too many servers are being asked, or the program's database is busy. Try again in some seconds.", "error");
    else if (status === 413) toast("Too large: a request may bring at most 20 MB and 20,000 fields.", "error");
    else toast(`The server could not do this (${status}). Try again.`, "error");
  });
  document.addEventListener("htmx:sendError", (event) => {
    if (!isPoll(event)) toast("The server does not answer. Check that it runs, then try again.", "error");
  });

  // --- leaving: once an answer leads to another page, no poll may begin that way anew. A page that takes longer to come than the
  // next poll would never be reached.
  let leftAt = 0;
  function isLeaving() {
    return leftAt > 0 && Date.now() - leftAt < LEAVING_MS;
  }
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    if (!event.detail.xhr.getResponseHeader("HX-Redirect")) return;
    if (isLeaving() && isPoll(event)) event.preventDefault();
    else leftAt = Date.now();
  });
  window.addEventListener("pageshow", () => { leftAt = 0; });

  // --- a session that ended: the sign-in page is no panel ---
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (new URL(event.detail.xhr.responseURL || location.href).pathname !== "/sign-in/") return;
    event.detail.shouldSwap = false;
    if (isLeaving()) return;
    leftAt = Date.now();
    location.reload();
  });

  // --- polls: none while the page is hidden or a menu in the panel is open; a silent server shows as stale ---
  function isPoll(event) {
    const panel = event.detail.elt;
    return Boolean(panel && panel.hasAttribute && panel.hasAttribute("data-poll"));
  }
  // An action's answer reaches the page through the form that sent it: while one is under way no poll may replace that form.
  let acting = 0;
  document.addEventListener("htmx:beforeSend", (event) => {
    if (isPoll(event)) return;
    acting += 1;
    event.detail.xhr.addEventListener("loadend", () => { acting -= 1; });
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (acting > 0 && event.detail.requestConfig.elt.hasAttribute("data-poll")) event.detail.shouldSwap = false;
  });
  // An answer for a panel that an action's answer has replaced meanwhile is older than what the page shows. Such a panel is out of the
  // document, so its events do not reach the document.
  function dropLate(event) {
    const panel = event.currentTarget;
    if (event.target === panel && !panel.isConnected) event.preventDefault();
  }
  document.addEventListener("htmx:beforeSend", (event) => {
    if (isPoll(event)) event.detail.elt.addEventListener("htmx:beforeOnLoad", dropLate);
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    const panel = event.detail.elt;
    if (!panel.hasAttribute("data-poll")) return;
    const isHeld = document.querySelector("details.menu[open], dialog[open]") || panel.querySelector("details[open]");
    if (document.hidden || isHeld || isLeaving()) event.preventDefault();
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const panel = event.detail.elt;
    if (!panel.hasAttribute("data-poll")) return;
    const live = document.getElementById(panel.id) || panel;
    if (event.detail.successful) {
      live.dataset.seenAt = String(Date.now());
      live.classList.remove("stale");
    }
  });
  function staleAfter(panel) {
    const every = /every (\d+)s/.exec(panel.getAttribute("hx-trigger") || "");
    return Math.max(POLL_STALE_MS, every ? 2500 * Number(every[1]) : 0);
  }
  function markStale() {
    for (const panel of document.querySelectorAll("[data-poll]")) {
      const seen = Number(panel.dataset.seenAt || Date.now());
      if (!panel.dataset.seenAt) panel.dataset.seenAt = String(seen);
      const age = Date.now() - seen;
      const isHeld = document.querySelector("details.menu[open], dialog[open]") || panel.querySelector("details[open]");
      const isStale = age > staleAfter(panel) && !document.hidden && !isHeld;
      panel.classList.toggle("stale", isStale);
      const note = panel.querySelector(".stale-note");
      if (note && isStale) note.textContent = `updated ${ago(age / 1000)}`;
    }
  }

  // --- times ---
  function ago(seconds) {
    const units = [[86400, "d"], [3600, "h"], [60, "min"]];
    for (const [size, name] of units) if (seconds >= size) return `${Math.floor(seconds / size)} ${name} ago`;
    return seconds < 5 ? "just now" : `${Math.floor(seconds)} s ago`;
  }
  function refreshTimes() {
    for (const item of document.querySelectorAll("time[data-ago]")) {
      const seconds = (Date.now() - Date.parse(item.dateTime)) / 1000;
      if (seconds >= 0) item.textContent = ago(seconds);
    }
  }

  // --- menus ---
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });

  function copied(text) {
    if (navigator.clipboard) navigator.clipboard.writeText(text);
    else copyBySelection(text); // plain HTTP on another host: browsers offer no clipboard there
    toast("Copied.", "success");
  }
  function copyBySelection(text) {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }

  // --- clicks: menus close, dialogs open and close, copying ---
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
    const closer = event.target.closest("[data-closes]");
    if (closer && closer.closest("dialog")) {
      event.preventDefault();
      closer.closest("dialog").close();
    }
    const copy = event.target.closest("[data-copies]");
    if (copy) {
      const field = document.getElementById(copy.dataset.copies);
      copied("value" in field ? field.value : field.textContent.trim());
    }
    const inline = event.target.closest(".code-copy");
    if (inline) copied(inline.previousElementSibling.textContent);
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id === "dialog" && event.detail.target.innerHTML.trim()) {
      for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
      event.detail.target.showModal();
    }
    const wrong = document.querySelector("[data-focus-error] .has-error input, [data-focus-error] .has-error select");
    const isSent = event.detail.requestConfig.elt.tagName === "FORM"; // what is saved while somebody types leaves the focus
    if (wrong && isSent && event.detail.xhr.status === 422) wrong.focus();
    dress(document);
    refreshTimes();
  });
  document.addEventListener("htmx:beforeSwap", () => {
    const log = document.querySelector(".log[data-follow]");
    if (log) log.dataset.isAtEnd = String(log.scrollHeight - log.scrollTop - log.clientHeight < 60);
  });
  document.addEventListener("htmx:afterSettle", () => {
    const log = document.querySelector(".log[data-follow]");
    if (log && log.dataset.isAtEnd === "true") log.scrollTop = log.scrollHeight;
  });

  function dress(root) {
    for (const item of root.querySelectorAll("[data-needs-js]")) item.hidden = false;
  }
  function start() {
    for (const item of document.querySelectorAll("#toasts .toast-item")) armToast(item);
    dress(document);
    const wrong = document.querySelector("textarea[data-wrong-at]");
    if (wrong) { // the cursor goes to the wrong character; textareas count UTF-16 units
      const at = [...wrong.value].slice(0, Number(wrong.dataset.wrongAt)).join("").length;
      wrong.focus();
      wrong.setSelectionRange(at, at);
    }
    const log = document.querySelector(".log[data-follow]");
    if (log) log.scrollTop = log.scrollHeight;
    setInterval(() => { refreshTimes(); markStale(); }, 1000);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
