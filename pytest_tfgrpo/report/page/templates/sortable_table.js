// Tables that sort by a click on a head.

const collator = new Intl.Collator("en", { numeric: true });

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = make("button", { type: "button", className: "sort" }, ...head.childNodes);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = [...table.tBodies[0].rows].map((row) => [keyOf(row.cells[column]), row]);
      keyed.sort(([a], [b]) => compare(a, b) * (down ? -1 : 1));
      table.tBodies[0].append(...keyed.map(([, row]) => row));
    });
  });
}

/** What a cell sorts by: its own value, else the number it starts with, else its text; unknown comes last. */
function keyOf(cell) {
  if (!cell) return null;
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  const text = cell.textContent.trim();
  if (text === "" || text === "-" || text === "?") return null;
  const found = /^[+-]?\$?[\d.,]+(e[+-]?\d+)?/.exec(text);
  const value = found ? Number(found[0].replace(/[$,]/g, "")) : NaN;
  return Number.isNaN(value) || cell.classList.contains("text") ? text : value;
}

function compare(a, b) {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return collator.compare(a, b);
}
