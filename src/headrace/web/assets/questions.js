// Keeps the pictures on screen up to date: asks for each again, at most once a second, while its counts are not complete
// or its run goes on. Without it the page shows what was there when it was loaded.
const EVERY_MS = 1500;
const SLOWEST_MS = 15000;

const onScreen = new Set();
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) isIntersecting ? onScreen.add(target) : onScreen.delete(target);
});
for (const section of document.querySelectorAll(".picture")) watcher.observe(section);

async function refresh(section) {
  const reply = await fetch(section.dataset.src, { headers: { Accept: "text/html" } });
  if (!reply.ok) return false;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const found = page.querySelector(".picture");
  const figure = section.querySelector("figure");
  if (!found || figure.contains(document.activeElement)) return true; // somebody is on one of its links
  figure.replaceWith(found.querySelector("figure"));
  section.dataset.live = found.dataset.live;
  return true;
}

let wait = EVERY_MS;
async function look() {
  const due = document.hidden ? [] : [...onScreen].filter((section) => section.dataset.live === "yes");
  try {
    for (const section of due) {
      if (!(await refresh(section))) throw new Error("not now");
    }
    wait = EVERY_MS;
  } catch {
    wait = Math.min(2 * wait, SLOWEST_MS); // the page's process has gone, or is busy
  }
  if (document.querySelector('.picture[data-live="yes"]')) setTimeout(look, wait);
}
setTimeout(look, EVERY_MS);
