// Keeps a page up to date by server-sent events. The server formats every figure; here texts are put in their places.
// A hidden tab closes its stream: a browser has few connections to one server, and the next event has everything.

const FRAGMENT_EVERY_MS = 5000;
const list = document.querySelector("[data-live-list]");
const run = document.querySelector("[data-live-run]");

function setText(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

function setState(element, state) {
  if (!element || element.textContent === state) return false;
  element.className = "state " + state.replaceAll(" ", "-");
  element.textContent = state;
  return true;
}

function setMeter(element, percent) {
  if (element && percent !== null) element.value = percent;
}

function replaceWhereOther(shown, found) {
  // Nothing is taken away from under a reader: not what has the focus.
  if (!shown.isEqualNode(found) && !shown.contains(document.activeElement)) shown.replaceWith(document.adoptNode(found));
}

// Parts of this page as the server draws them now, in the place of what is shown.
function fragments(selector, everyMs) {
  let due = 0, isFetching = false;
  return async (isUrgent = false) => {
    if (isFetching || (Date.now() < due && !isUrgent)) return;
    if (!document.querySelector(selector)) return;
    isFetching = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.querySelectorAll(selector), shown = document.querySelectorAll(selector);
      if (found.length === shown.length) shown.forEach((each, place) => replaceWhereOther(each, found[place]));
    } catch {
      // The stream says that the connection is lost.
    } finally {
      isFetching = false;
      due = Date.now() + everyMs;
    }
  };
}

const redrawFragments = fragments("[data-fragment]", FRAGMENT_EVERY_MS);
const redrawList = fragments("[data-live-list]", FRAGMENT_EVERY_MS);

function showRun({ run: now }) {
  const isOther = setState(document.querySelector("[data-state]"), now.state);
  setMeter(document.querySelector("[data-meter]"), now.percent);
  for (const figure of now.figures) {
    const place = document.querySelector(`[data-figure="${CSS.escape(figure.name)}"]`);
    if (!place) continue;
    place.hidden = figure.text === "";
    const text = place.querySelector("dd");
    setText(text, figure.text);
    text.classList.toggle("bad", figure.is_bad);
  }
  const notice = document.querySelector("[data-notice]");
  if (notice) {
    setText(notice, now.live ? now.live.notice : "");
    notice.hidden = notice.textContent === "";
  }
  now.endpoints.forEach((each, place) => {
    const words = document.querySelector(`[data-endpoint="${place}"] [data-now]`);
    setText(words, each.now);
    words?.classList.toggle("warn", each.state !== "open");
  });
  redrawFragments(isOther);
}

function showFiles({ files, total, truncated }) {
  const rows = new Map([...document.querySelectorAll("[data-file]")].map((row) => [row.dataset.file, row]));
  let isOther = truncated || total !== rows.size;
  for (const file of files) {
    const row = rows.get(file.id);
    if (!row) {
      isOther = true;
      continue;
    }
    setState(row.querySelector("[data-state]"), file.state);
    setMeter(row.querySelector("[data-meter]"), file.percent);
    for (const place of row.querySelectorAll("[data-text]")) setText(place, file.texts[place.dataset.text]);
    row.querySelector('[data-text="failed"]').classList.toggle("bad", Boolean(file.failed));
  }
  if (isOther) redrawList();
}

function follow(address, name, show) {
  const connection = document.querySelector("[data-connection]");
  let source = null;
  const close = () => {
    source?.close();
    source = null;
  };
  const open = () => {
    close();
    source = new EventSource(address);
    source.onopen = () => setText(connection, "live");
    source.onerror = () => {
      const isGone = source?.readyState === EventSource.CLOSED;
      setText(connection, isGone ? "no live updates: load the page again" : "connection lost, trying again");
    };
    source.addEventListener(name, (event) => show(JSON.parse(event.data)));
    source.addEventListener("trouble", (event) => setText(connection, JSON.parse(event.data).error.message));
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : source || open()));
  if (!document.hidden) open();
}

if (run) follow(run.dataset.liveRun, "run", showRun);
if (list) follow(list.dataset.liveList, "files", showFiles);
