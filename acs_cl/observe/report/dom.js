// Elements and tables. Texts of the program are set as text, never as markup.

const $ = (id) => document.getElementById(id);

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, what] of Object.entries(value)) node.addEventListener(event, what);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const swatch = (colour) => el("span", { class: "swatch", style: `background:${colour}` });

// A table that sorts by a click on a head. columns: {head, value(row), show?(row), number?, title?}.
function table(columns, rows, { caption, pick, page = 25, sort } = {}) {
  let order = sort ? sort.column : -1;
  let falls = sort ? sort.falls : false;
  let at = 0;
  const body = el("tbody");
  const heads = columns.map((column, i) => {
    const button = el("button", { type: "button", title: column.title || "Sort by this", on: { click: () => by(i) } }, column.head);
    return el("th", { class: column.number ? "num" : "", scope: "col" }, button);
  });
  const pages = el("div", { class: "pages" });
  const box = el("div", {},
    el("div", { class: "scroll" },
      el("table", {}, caption && el("caption", {}, caption), el("thead", {}, el("tr", {}, ...heads)), body)),
    pages);

  function by(i) {
    falls = order === i ? !falls : Boolean(columns[i].number);
    order = i;
    at = 0;
    show();
  }

  function sorted() {
    if (order < 0) return rows;
    const { value } = columns[order];
    const sign = falls ? -1 : 1;
    return [...rows].sort((a, b) => {
      const x = value(a), y = value(b);
      return sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y)));
    });
  }

  function show() {
    heads.forEach((head, i) => {
      if (i === order) head.setAttribute("aria-sort", falls ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const some = sorted().slice(at, at + page);
    body.replaceChildren(...some.map((row) => {
      const cells = columns.map((column) => {
        const shown = column.show ? column.show(row) : column.value(row);
        return el("td", { class: column.number ? "num" : "" }, shown instanceof Node ? shown : String(shown));
      });
      if (!pick) return el("tr", {}, ...cells);
      const choose = () => pick(row);
      const key = (event) => event.key === "Enter" && choose();
      return el("tr", { class: "pick", tabindex: "0", on: { click: choose, keydown: key } }, ...cells);
    }));
    const step = (by) => () => { at += by; show(); };
    pages.hidden = rows.length <= page;
    pages.replaceChildren(
      el("button", { type: "button", disabled: at === 0, on: { click: step(-page) } }, "Earlier"),
      `${count(at + 1)} to ${count(Math.min(rows.length, at + page))} of ${count(rows.length)}`,
      el("button", { type: "button", disabled: at + page >= rows.length, on: { click: step(page) } }, "Later"));
  }
  show();
  return box;
}
