// Live pages: countdowns, a log that can be held still, and a failed request reported in its page.
"use strict";

(() => {
  function countDown() {
    for (const item of document.querySelectorAll("time[data-until]")) {
      const left = Math.round((Date.parse(item.dateTime) - Date.now()) / 1000);
      item.textContent = left > 0 ? `in ${words(left)}` : "now";
    }
  }
  function words(seconds) {
    if (seconds < 120) return `${seconds} s`;
    return seconds < 3600 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
  }

  // --- logs: while Follow is off nothing is fetched, so nothing moves ---
  document.addEventListener("htmx:beforeRequest", (event) => {
    const follow = document.getElementById("log-follow");
    if (follow && !follow.checked && event.detail.elt.hasAttribute("data-log-next")) event.preventDefault();
  });
  document.addEventListener("change", (event) => {
    if (event.target.id !== "log-follow" || !event.target.checked) return;
    const log = document.querySelector(".log[data-follow]");
    if (log) log.scrollTop = log.scrollHeight;
  });

  // --- a request that failed says so in the page too, until an action succeeds ---
  function tell(event, failed, text) {
    const asking = event.detail.elt;
    if (asking && asking.hasAttribute("data-poll")) return;
    const place = document.querySelector("[data-errors]");
    if (!place) return;
    const notice = document.createElement("div");
    notice.className = "notice is-red";
    notice.setAttribute("role", "alert");
    const reported = document.createElement("div");
    const title = document.createElement("h3");
    title.textContent = failed;
    const line = document.createElement("p");
    line.textContent = text;
    reported.append(title, line);
    notice.append(document.createElement("span"), reported);
    place.replaceChildren(notice);
  }
  document.addEventListener("htmx:responseError", (event) => {
    const status = event.detail.xhr.status;
    if (status === 401 || status === 403) {
      tell(event, "You are signed out, or may not do this", "Load the page again.");
    } else if (status === 503) {
      tell(event, "Not now", "Too many servers are being asked, or the program's database is busy. Try again in some seconds.");
    } else tell(event, `The server could not do this (${status})`, "Try again; its log says why.");
  });
  document.addEventListener("htmx:sendError", (event) => {
    tell(event, "The server does not answer", "Check that it runs, then try again.");
  });

  // --- an action from a dialog or a menu closes it when it is done, or refused (the page says so) ---
  document.addEventListener("htmx:afterRequest", (event) => {
    const form = event.detail.elt;
    if (!form.matches || !form.matches("form[data-done-closes]")) return;
    form.closest("dialog")?.close();
    const menu = form.closest("details");
    if (menu) menu.open = false;
    if (event.detail.successful) form.reset();
  });

  function start() {
    for (const item of document.querySelectorAll("[data-no-js]")) item.hidden = true;
    countDown();
    setInterval(countDown, 1000);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
