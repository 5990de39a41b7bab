// Text of models and scenarios made fit to look at, and elements that hold it. Nothing is ever parsed as HTML.

const COLOUR = /\u001b\[[0-9;:]*m/g;
const UNFIT = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
const PREVIEW = 3000;

/** Colour codes vanish; characters that would hide or reorder text are shown as escapes. */
function visible(text) {
  return String(text).replace(/\r\n/g, "\n").replace(COLOUR, "").replace(UNFIT, (character) => {
    if (character === "\n" || character === "\t") return character;
    const code = character.codePointAt(0);
    const hex = code.toString(16);
    if (code < 0x100) return "\\x" + hex.padStart(2, "0");
    return code < 0x10000 ? "\\u" + hex.padStart(4, "0") : "\\U" + hex.padStart(8, "0");
  });
}

function byId(id) {
  return document.getElementById(id);
}

/** A number of things: "1 lesson", "2 lessons". */
function plural(n, what) {
  return `${whole(n)} ${what}${n === 1 ? "" : "s"}`;
}

/** Make an element: properties that start with "aria-" or "data-" or are unknown become attributes. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name in element && !name.includes("-")) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === "") continue;
    element.append(child instanceof Node ? child : visible(child));
  }
  return element;
}

/** A block of foreign text; a long one shows its start, and all of it on demand. */
function textBlock(text, label) {
  if (text === "") return make("p", { className: "soft" }, "(empty)");
  const block = make("pre", { tabIndex: text.length > 400 ? 0 : -1, "aria-label": label });
  block.textContent = visible(text.slice(0, PREVIEW));
  if (text.length <= PREVIEW) return block;
  const more = make("button", { type: "button" }, `show all ${whole(text.length)} characters`);
  more.addEventListener("click", () => {
    block.textContent = visible(text);
    more.remove();
    block.focus();
  });
  return make("div", {}, block, more);
}

function number(value, digits = 3) {
  return value === null || value === undefined ? "-" : value.toFixed(digits);
}

function signed(value) {
  return value === null || value === undefined ? "-" : (value >= 0 ? "+" : "") + value.toFixed(3);
}

function whole(value) {
  return Math.round(value).toLocaleString("en-US");
}

function money(value) {
  if (value === null || value === undefined) return "?";
  if (value > 0 && value < 0.00005) return "<$0.0001";
  return "$" + value.toFixed(value >= 0.01 || value === 0 ? 2 : 4);
}

function duration(ms) {
  if (ms === null || ms === undefined) return "-";
  if (ms >= 1000) return (ms / 1000).toFixed(ms < 100000 ? 1 : 0) + " s";
  return ms.toFixed(ms < 10 ? 1 : 0) + " ms";
}

function routeTo(...parts) {
  return "#scenario/" + parts.map((part) => encodeURIComponent(part)).join("/");
}
