// The table of scenarios: only the rows in sight are in the document.

const AHEAD = 8;

class ScenarioMap {
  constructor(box) {
    this.box = box;
    this.shown = [];
    this.columns = [];
    this.order = { key: "change", down: false };
    this.active = { row: 0, column: 0 };
    this.range = [-1, -1];
    this.body = make("tbody", { role: "rowgroup" });
    this.top = make("thead", { role: "rowgroup" });
    this.table = make("table", { role: "grid", "aria-label": "scenarios" }, this.top, this.body);
    box.append(this.table);
    box.hidden = false;
    box.addEventListener("scroll", () => requestAnimationFrame(() => this.draw()), { passive: true });
    new ResizeObserver(() => { if (this.measure()) this.draw(true); else this.draw(); }).observe(box);
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("focusin", (event) => this.mark(event.target));
    this.measure();
  }

  /** Read the height of a row, which differs on a phone, and there by columns; returns whether it changed. */
  measure() {
    const style = getComputedStyle(this.box), length = (name) => parseFloat(style.getPropertyValue(name));
    const count = this.columns.filter((column) => column.kind === "side").length;
    const height = count ? length("--row-sides") + count * length("--row-side") : length("--row");
    const changed = height !== this.height;
    this.height = height;
    this.box.classList.toggle("sided", count > 0);
    this.box.style.setProperty("--sides", count);
    this.box.style.setProperty("--height", `${height}px`);
    return changed;
  }

  /** Show other columns; the row heads stay. */
  choose(columns) {
    this.columns = columns;
    this.table.setAttribute("aria-colcount", columns.length);
    this.top.replaceChildren(make("tr", { role: "row", "aria-rowindex": 1 }, columns.map((column) => {
      const button = make("button", { type: "button", className: "sort" }, column.name);
      button.addEventListener("click", () => this.sort(column.key));
      return make("th", { scope: "col", role: "columnheader", className: this.kind(column), "data-key": column.key, title: column.title }, button);
    })));
    this.active.column = Math.min(this.active.column, columns.length - 1);
    this.markOrder();
    this.measure();
    this.draw(true);
  }

  kind(column) {
    if (column.kind === "side") return "side";
    return column.kind === "text" ? `words ${column.key}` : column.kind === "id" ? "id" : `phase ${column.key}`;
  }

  show(found) {
    this.shown = found;
    this.active = { row: 0, column: this.active.column };
    this.arrange();
  }

  sort(key, down) {
    const column = this.columns.find((one) => one.key === key);
    if (down === undefined) down = this.order.key === key ? !this.order.down : Boolean(column) && column.kind === "score";
    this.order = { key, down };
    this.markOrder();
    this.arrange();
    this.box.dispatchEvent(new Event("sorted"));
  }

  markOrder() {
    for (const cell of this.top.rows[0].cells) {
      if (cell.dataset.key === this.order.key) cell.setAttribute("aria-sort", this.order.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }

  arrange() {
    const column = this.columns.find((one) => one.key === this.order.key);
    if (column) {
      const sign = this.order.down ? -1 : 1;
      const keyed = this.shown.map((row) => [column.value(row), row]);
      keyed.sort(([x, a], [y, b]) => ((x === null || y === null ? 1 : sign) * compare(x, y)) || a.n - b.n);
      this.shown = keyed.map(([, row]) => row);
    } else this.shown.sort((a, b) => a.n - b.n);
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
    if (!this.shown.length) lines.push(make("tr", { role: "row", className: "nothing" }, make("td", { role: "gridcell", colSpan: this.columns.length }, isPartial() ? "no scenario on this page matches the filter" : "no scenario matches the filter")));
    this.body.replaceChildren(this.gap(from), ...lines, this.gap(this.shown.length - to));
    const target = this.link(this.active.row, this.active.column) || this.link(from, 0);
    if (target) target.tabIndex = 0;
    if (focused && target) target.focus({ preventScroll: true });
  }

  gap(count) {
    const gap = make("tr", { className: "gap", role: "presentation", hidden: count === 0 });
    gap.style.height = `${count * this.height}px`;
    return gap;
  }

  line(row, at) {
    return make("tr", { role: "row", "aria-rowindex": at + 2 }, this.columns.map((column, place) => {
      const { content, label, look, title = null } = shownIn(column, row);
      const link = make("a", { href: column.route(row), tabIndex: -1, "data-at": at, "data-column": place, "data-name": column.name, "aria-label": label }, content);
      const properties = { className: `${this.kind(column)} ${look}`, title: column.kind === "text" || column.kind === "id" ? visible(column.value(row) ?? "") : title };
      return column.kind === "id" ? make("th", { ...properties, scope: "row", role: "rowheader" }, link) : make("td", { ...properties, role: "gridcell" }, link);
    }));
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
    column = Math.max(0, Math.min(this.columns.length - 1, column));
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
    const at = this.shown.findIndex((row) => row.id === id);
    if (at < 0) return;
    const same = at === this.active.row && this.columns[this.active.column]?.cell(this.shown[at]) === column;
    const place = this.columns.findIndex((one) => ["score", "side"].includes(one.kind) && one.cell(this.shown[at]) === column);
    this.go(at, same ? this.active.column : Math.max(0, place));
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

/** What a column shows in a row: its content, a label where the content is too short to be heard alone, its look. */
function shownIn(column, row) {
  const value = column.value(row);
  if (column.kind === "id") return { content: [row.id, make("small", {}, row.domain)], label: null, look: "" };
  if (column.kind === "text") return { content: make("span", {}, value ?? ""), label: value ? null : `${row.id}, ${column.name}: none`, look: "" };
  if (column.kind === "change") return { content: signed(value), label: `${row.id}, ${column.name}: ${signed(value)}`, look: value < -1e-9 ? "lost" : value > 1e-9 ? "gained" : "" };
  if (column.kind === "side") return shownOf(column, row);
  const cell = column.found(row);
  if (!cell) return { content: "", label: `${row.id}, ${column.name}: not run`, look: "" };
  const content = [number(cell.mean, 2), isMixed(cell) ? make("span", { className: "mixed", title: "rollouts differ" }) : "", ...(cell.errors ? [" ", make("span", { className: "err" }, `${cell.errors} err`)] : [])];
  const label = `${row.id}, ${column.name}: ${number(cell.mean, 2)}` + (cell.errors ? ` ${cell.errors} err` : "") + (isMixed(cell) ? ", rollouts differ" : "");
  return { content, label, look: cell.mean === null ? "none" : `h${Math.round(cell.mean * 10)}` };
}

/** What the column of a run shows: its score, what failed, its answer. */
function shownOf(column, row) {
  const cell = column.found(row), answer = column.answer(row), failed = column.failed(row), change = column.change(row);
  if (!cell) return { content: make("span", { className: "soft" }, "not run"), label: `${row.id}, ${column.name}: not run`, look: "" };
  const head = make("div", { className: "of", "data-name": column.name }, make("b", { className: `score ${heatOf(cell.mean)}` }, number(cell.mean, 2)), isMixed(cell) ? make("span", { className: "mixed", title: "rollouts differ" }) : "",
    change === null ? "" : make("small", { className: `phone ${change < -1e-9 ? "bad" : change > 1e-9 ? "good" : ""}` }, ` ${signed(change)}`),
    cell.errors ? make("span", { className: "err" }, ` ${cell.errors} err`) : "", failed ? make("small", { className: "bad" }, ` ${failed}`) : "");
  return { content: [head, make("span", {}, answer)], label: null, look: "", title: visible([failed, answer].filter(Boolean).join("\n")) };
}
