"use strict";
(() => {
  const lost = document.getElementById("lost"), place = document.querySelector("main");
  let live, current, find;
  const RETRY = 2000, SILENT = 6000;
  // As the server wrote each module: what is shown has ages in it, and may be open.
  let written = new Map(), version = null, heard = Date.now(), shown = Date.now(), title = document.title;

  const ago = (at, kind) => {
    const seconds = (Date.now() - Date.parse(at)) / 1000, past = seconds >= 0, size = Math.abs(seconds);
    const [many, unit] = size < 60 ? [size, "s"] : size < 3600 ? [size / 60, "min"]
      : size < 172800 ? [size / 3600, "h"] : [size / 86400, "d"];
    const text = `${Math.floor(many)} ${unit}`;
    if (kind === "since") return `for ${past ? text : "0 s"}`;
    return !past ? `in ${text}` : kind === "due" ? "any moment now" : `${text} ago`;
  };
  const age = () => {
    for (const time of document.querySelectorAll("time")) {
      time.title ||= time.textContent;
      // Where there is room, the time itself is what logs are searched for.
      const exact = time.closest("dl, details ul") ? ` (${time.title})` : "";
      const text = ago(time.dateTime, time.className) + exact;
      if (time.textContent !== text) time.textContent = text;
    }
  };
  const told = () => {
    const silent = Date.now() - heard > SILENT;
    if (silent) {
      const text = `The operator does not answer. What is shown is ${ago(new Date(shown)).replace(" ago", "")} old.`;
      if (lost.textContent !== text) lost.textContent = text;
    }
    lost.hidden = !silent;
    const now = silent ? `no answer · ${title}` : title;
    if (document.title !== now) document.title = now;
  };
  const narrow = () => {
    const text = find ? find.value.trim().toLowerCase() : "";
    for (const module of document.querySelectorAll(".modules > li"))
      module.classList.toggle("other", text !== "" && !module.id.slice(2).includes(text));
  };
  const replace = (page) => {
    document.title = title = page.title;
    // An operator that starts has no filters to show yet: what somebody chose there is of no interest then.
    if (!page.querySelector("fieldset") !== !place.querySelector("fieldset")) {
      place.replaceChildren(...page.querySelector("main").childNodes);
      begin();
      return age();
    }
    const next = page.getElementById("live"), before = new Map();
    for (const module of live.querySelectorAll(".modules > li")) before.set(module.id, module);
    const now = new Map(), focused = document.activeElement && document.activeElement.closest(".modules > li");
    for (const module of next.querySelectorAll(".modules > li")) {
      const text = module.outerHTML, old = before.get(module.id);
      now.set(module.id, text);
      if (!old) continue;
      if (written.get(module.id) === text) module.replaceWith(old);
      else module.firstChild.open = old.firstChild.open;
    }
    written = now;
    for (const count of page.querySelectorAll("[id^=count-]")) {
      const here = document.getElementById(count.id);
      if (here) here.textContent = count.textContent;
    }
    const said = live.querySelector("#said"), fresh = next.querySelector("#said");
    // The same element, so that what reads the page aloud notices.
    if (said && fresh) {
      if (said.textContent !== fresh.textContent) said.textContent = fresh.textContent;
      fresh.replaceWith(said);
    }
    current.replaceChildren(...page.getElementById("now").childNodes);
    live.replaceChildren(...next.childNodes);
    narrow();
    age();
    if (focused) {
      const again = document.getElementById(focused.id);
      if (again && document.activeElement !== again.firstChild.firstChild) again.firstChild.firstChild.focus({preventScroll: true});
    }
  };
  const get = async () => {
    const answer = await fetch(location.pathname, {cache: "no-store"});
    if (!answer.ok) throw new Error(answer.statusText);
    replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
    heard = shown = Date.now();
  };
  const follow = () => {
    const source = new EventSource("live");
    source.onmessage = async (event) => {
      heard = Date.now();
      if (event.data === version) { shown = heard; return; }
      try { await get(); version = event.data; } catch { /* The next message comes soon. */ }
    };
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(follow, RETRY);
    };
  };
  const begin = () => {
    [live, current, find] = ["live", "now", "find"].map((id) => document.getElementById(id));
    written = new Map();
    if (!find) return;
    find.closest("label").hidden = false;
    find.addEventListener("input", narrow);
  };
  begin();
  age();
  setInterval(() => { age(); if (live) told(); }, 1000);
  if (live) follow();
})();
