// The map of scenarios by sweep and epoch: only the rows in sight are in the document.

const AHEAD = 12;

/** Columns in the order of interest: sweeps and the change between them (-1), training, the dev split. */
function places() {
  const found = ["sweep", "train", "dev"].map((kind) => index.columns.map((column, i) => [column.mode, i])
    .filter(([mode]) => (kind === "sweep" ? mode !== "train" && mode !== "dev" : mode === kind)).map(([, i]) => i));
  return [...found[0], -1, ...found[1], ...found[2]];
}

class ScenarioMap {
  constructor(box) {
    this.box = box;
    this.shown = rows;
    this.places = places();
    this.order = { key: null, down: false };
    this.active = { row: 0, column: 0 };
    this.range = [-1, -1];
    this.body = make("tbody");
    this.table = make("table", { role: "grid", "aria-label": "scenarios by sweep and epoch", "aria-colcount": index.columns.length + 4 },
      make("thead", {}, this.head()), this.body);
    this.table.style.width = `max(100%, calc(var(--id) + var(--about) + ${index.columns.length + 1} * var(--phase)))`;
    box.append(this.table);
    box.hidden = false;
    this.height = parseFloat(getComputedStyle(box).getPropertyValue("--row"));
    box.addEventListener("scroll", () => requestAnimationFrame(() => this.draw()), { passive: true });
    new ResizeObserver(() => this.draw()).observe(box);
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("focusin", (event) => this.mark(event.target));
    this.draw(true);
  }

  head() {
    const head = (key, text, className) => {
      const button = make("button", { type: "button", className: "sort" }, text);
      const cell = make("th", { scope: "col", className, "data-key": key }, button);
      button.addEventListener("click", () => this.sort(key));
      return cell;
    };
    return make("tr", { "aria-rowindex": 1 }, head("id", "scenario", "id"), head("domain", "domain", "domain"), head("split", "split", "split"),
      this.places.map((i) => (i < 0 ? head("change", "change", "phase") : head(i, index.columns[i].label, "phase"))));
  }

  show(found) {
    this.shown = found;
    this.active = { row: 0, column: this.active.column };
    this.arrange();
  }

  sort(key) {
    this.order = { key, down: this.order.key === key ? !this.order.down : typeof key === "number" };
    for (const cell of this.table.tHead.rows[0].cells) {
      if (cell.dataset.key === String(key)) cell.setAttribute("aria-sort", this.order.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    this.arrange();
  }

  arrange() {
    const { key, down } = this.order;
    if (key !== null) {
      const value = (row) => (typeof key === "number" ? (row.cells[key] ? row.cells[key].mean : null) : row[key]);
      const sign = down ? -1 : 1;
      this.shown = [...this.shown].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === null || y === null) return compare(x, y) || a.n - b.n;
        return sign * compare(x, y) || a.n - b.n;
      });
    }
    this.box.scrollTop = 0;
    this.draw(true);
  }

  draw(anew = false) {
    const inSight = Math.ceil(this.box.clientHeight / this.height) + 1;
    const top = Math.floor(this.box.scrollTop / this.height);
    const from = Math.max(0, Math.min(top, this.shown.length - inSight) - AHEAD);
    const to = Math.min(this.shown.length, top + inSight + AHEAD);
    if (!anew && from === this.range[0] && to === this.range[1]) return;
    const focused = this.body.contains(document.activeElement);
    this.range = [from, to];
    this.table.setAttribute("aria-rowcount", this.shown.length + 1);
    const lines = this.shown.slice(from, to).map((row, i) => this.line(row, from + i));
    this.body.replaceChildren(this.gap(from), ...lines, this.gap(this.shown.length - to));
    if (!this.shown.length) this.body.append(make("tr", {}, make("td", { colSpan: 4 }, "no scenario matches the filter")));
    const target = this.link(this.active.row, this.active.column) || this.link(from, 0);
    if (target) target.tabIndex = 0;
    if (focused && target) target.focus({ preventScroll: true });
  }

  gap(count) {
    const gap = make("tr", { className: "gap", "aria-hidden": "true" });
    gap.style.height = `${count * this.height}px`;
    return gap;
  }

  line(row, at) {
    const link = (column, text, route, label) =>
      make("a", { href: route, tabIndex: -1, "data-at": at, "data-column": column, "aria-label": label }, text);
    const cells = this.places.map((i, place) => {
      if (i < 0) return make("td", { className: row.change < 0 ? "phase change lost" : "phase change" }, signed(row.change));
      const cell = row.cells[i];
      if (!cell) return make("td", { className: "phase" }, link(place + 1, "", routeTo(row.id), `${row.id}, ${index.columns[i].label}: not run`));
      const level = cell.mean === null ? "none" : `h${Math.round(cell.mean * 10)}`;
      const label = `${row.id}, ${index.columns[i].label}: ${number(cell.mean)}` + (cell.errors ? `, ${plural(cell.errors, "error")}` : "") + (isMixed(cell) ? ", rollouts differ" : "");
      const text = [number(cell.mean, 2), isMixed(cell) ? make("span", { className: "mixed" }, "•") : "", cell.errors ? make("span", { className: "err" }, `${cell.errors} err`) : ""];
      return make("td", { className: `phase ${level}` }, link(place + 1, text, routeTo(row.id, index.columns[i].label), label));
    });
    return make("tr", { "aria-rowindex": at + 2 },
      make("th", { scope: "row", className: "id", title: visible(row.id) }, link(0, row.id, routeTo(row.id), null)),
      make("td", { className: "domain", title: visible(row.domain) }, row.domain), make("td", { className: "split" }, row.split), cells);
  }

  link(row, column) {
    return this.body.querySelector(`a[data-at="${row}"][data-column="${column}"]`);
  }

  mark(target) {
    if (!target.dataset || target.dataset.at === undefined) return;
    for (const link of this.body.querySelectorAll('a[tabindex="0"]')) link.tabIndex = -1;
    target.tabIndex = 0;
    this.active = { row: Number(target.dataset.at), column: Number(target.dataset.column) };
  }

  go(row, column) {
    row = Math.max(0, Math.min(this.shown.length - 1, row));
    column = Math.max(0, Math.min(this.places.length, column));
    if (column && this.places[column - 1] < 0) column += column > this.active.column && column < this.places.length ? 1 : -1;
    this.active = { row, column };
    const top = row * this.height;
    const free = this.box.clientHeight - 2 * this.height;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top > this.box.scrollTop + free) this.box.scrollTop = top - free;
    this.draw();
    const target = this.link(row, column);
    if (!target) return;
    target.focus({ preventScroll: true });
    if (column) target.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** Put the focus on the cell of a scenario, where that is shown. */
  focusOn(id, column) {
    const place = this.places.indexOf(column) + 1;
    const at = this.shown.findIndex((row) => row.id === id);
    if (at >= 0) this.go(at, place);
  }

  key(event) {
    if (event.target.dataset.at === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const { row, column } = this.active;
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.height) - 2);
    const moves = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      PageUp: [row - page, column], PageDown: [row + page, column], Home: [0, column], End: [this.shown.length - 1, column],
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.go(...moves[event.key]);
  }
}
