// Keeps a page up to date by server-sent events. The server formats every figure; here texts are put in their places.
// A hidden tab closes its stream: a browser has few connections to one server, and the next event has everything.

const FRAGMENT_EVERY_MS = 5000;
const live = document.querySelector("[data-live]");

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

// As the reader has left it: what is opened, and how far it is scrolled.
function keepAsLeft(shown, found) {
  const opened = shown.querySelectorAll("details"), scrolled = shown.querySelectorAll(".scroll, .chart");
  found.querySelectorAll("details").forEach((each, place) => (each.open = opened[place]?.open ?? each.open));
  return () => found.querySelectorAll(".scroll, .chart").forEach((each, place) => (each.scrollLeft = scrolled[place]?.scrollLeft ?? 0));
}

function replaceWhereOther(shown, found) {
  // Nothing is taken away from under a reader: not what has the focus.
  if (shown.contains(document.activeElement)) return;
  const scrollBack = keepAsLeft(shown, found);
  if (shown.isEqualNode(found)) return;
  shown.replaceWith(document.adoptNode(found));
  scrollBack();
}

const named = (place, selector) => new Map([...place.querySelectorAll(selector)].map((each) => [each.dataset.fragment, each]));

// Parts of this page as the server draws them now, in the place of what is shown; the whole page where it has others.
function fragments(selector, everyMs) {
  let due = 0, isFetching = false, timer = null;
  const redraw = async (isUrgent = false) => {
    if (!document.querySelector(selector)) return;
    const waitMs = isFetching ? 200 : isUrgent ? 0 : due - Date.now();
    if (waitMs > 0) {
      timer ??= setTimeout(() => {
        timer = null;
        redraw(isUrgent);
      }, waitMs);
      return;
    }
    isFetching = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = named(page, selector), shown = named(document, selector);
      if (found.size === shown.size && [...found.keys()].every((name) => shown.has(name)))
        shown.forEach((each, name) => replaceWhereOther(each, found.get(name)));
      else replaceWhereOther(document.querySelector("main"), page.querySelector("main"));
      sayConnection();
    } catch {
      // The stream says that the connection is lost.
    } finally {
      isFetching = false;
      due = Date.now() + everyMs;
    }
  };
  return redraw;
}

const redrawFragments = fragments("[data-fragment]", FRAGMENT_EVERY_MS);
const redrawList = fragments('[data-live-event="files"]', FRAGMENT_EVERY_MS);

function showSubject(now) {
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
    setText(notice, now.live ? now.needs || now.live.notice : now.trouble);
    notice.hidden = notice.textContent === "";
  }
  document.querySelectorAll("[data-endpoint] [data-now]").forEach((words, place) => {
    const endpoint = now.endpoints[place];
    setText(words, endpoint?.now ?? "");
    words.classList.toggle("warn", endpoint !== undefined && endpoint.state !== "open");
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
    setText(row.querySelector("[data-trouble]"), file.trouble || file.needs);
    setMeter(row.querySelector("[data-meter]"), file.percent);
    for (const place of row.querySelectorAll("[data-text]")) setText(place, file.texts[place.dataset.text]);
    row.querySelector('[data-text="failed"]').classList.toggle("bad", Boolean(file.failed));
  }
  if (isOther) redrawList();
}

let said = "";
function sayConnection(text = said) {
  said = text;
  setText(document.querySelector("[data-connection]"), text);
}

function follow(address, name, show) {
  let source = null;
  const close = () => {
    source?.close();
    source = null;
  };
  const open = () => {
    close();
    source = new EventSource(address);
    source.onopen = () => sayConnection("live");
    source.onerror = () => {
      const isGone = source?.readyState === EventSource.CLOSED;
      sayConnection(isGone ? "no live updates: load the page again" : "connection lost, trying again");
    };
    source.addEventListener(name, (event) => show(JSON.parse(event.data)));
    source.addEventListener("trouble", (event) => sayConnection(JSON.parse(event.data).error.message));
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : source || open()));
  if (!document.hidden) open();
}

const SHOW = {
  run: ({ run }) => showSubject(run),
  engine: ({ engine }) => showSubject(engine),
  agent_run: () => redrawFragments(true),
  files: showFiles,
};
if (live) follow(live.dataset.live, live.dataset.liveEvent, SHOW[live.dataset.liveEvent]);
