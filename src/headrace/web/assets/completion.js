// Completes names of columns and functions in the boxes of a table's form. Without it the boxes work as they are.
const MOST = 12;
const WORD = /[\p{L}\p{N}_.]+$/u;
const ITEM = /[^,]*$/;

for (const form of document.querySelectorAll("form[data-columns]")) {
  let names = null;
  const load = () => (names ??= fetch(form.dataset.columns).then((reply) => (reply.ok ? reply.json() : { columns: [], functions: [] })));
  for (const input of form.querySelectorAll("input[data-completes]")) complete(input, load);
}

function complete(input, load) {
  const list = document.createElement("ul");
  list.className = "completions";
  list.id = `completions-${input.name}`;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Names");
  list.hidden = true;
  input.after(list);
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", list.id);
  input.setAttribute("aria-expanded", "false");
  const isExpression = input.dataset.completes === "expression";
  let at = -1;

  const word = () => (isExpression ? WORD : ITEM).exec(input.value.slice(0, input.selectionStart))?.[0] ?? "";
  const close = () => {
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const mark = (place) => {
    at = place;
    [...list.children].forEach((item, number) => item.setAttribute("aria-selected", String(number === at)));
    if (at < 0) return;
    input.setAttribute("aria-activedescendant", list.children[at].id);
    list.children[at].scrollIntoView({ block: "nearest" });
  };
  const insert = (text) => {
    const start = input.selectionStart - word().trimStart().length;
    input.setRangeText(text, start, input.selectionStart, "end");
    close();
    input.focus();
  };
  const show = async () => {
    const begun = word().trim().toLowerCase();
    if (!begun) return close();
    const { columns, functions } = await load();
    if (begun !== word().trim().toLowerCase()) return;
    const known = [...columns.map((column) => written(column.name, isExpression)), ...(isExpression ? functions.map((name) => `${name}(`) : [])];
    const found = known.filter((name) => name.toLowerCase().includes(begun) && name.toLowerCase() !== begun);
    const rank = (name) => (name.toLowerCase().startsWith(begun) ? 0 : 1000) + name.length;
    found.sort((one, other) => rank(one) - rank(other));
    list.replaceChildren(...found.slice(0, MOST).map(option));
    list.hidden = !found.length;
    input.setAttribute("aria-expanded", String(!!found.length));
    mark(-1);
  };
  const option = (name, number) => {
    const item = document.createElement("li");
    item.id = `${list.id}-${number}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    item.textContent = name;
    item.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      insert(name);
    });
    return item;
  };

  input.addEventListener("input", show);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const count = list.children.length;
    if (event.key === "ArrowDown") mark((at + 1) % count);
    else if (event.key === "ArrowUp") mark((at + count - 1) % count);
    else if ((event.key === "Enter" || event.key === "Tab") && at >= 0) insert(list.children[at].textContent);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
}

// A name with other signs in it stands in brackets in an expression, and in quotes in a list.
function written(name, isExpression) {
  if (/^[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}_][\p{L}\p{N}_]*)*$/u.test(name)) return name;
  if (!isExpression) return name.includes(",") || name.includes('"') ? `"${name.replaceAll('"', '""')}"` : name;
  const dot = name.indexOf(".");
  return dot < 0 ? name : `${name.slice(0, dot)}[${JSON.stringify(name.slice(dot + 1))}]`;
}
