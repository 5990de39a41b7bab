// A foreign text as people like to read it: Markdown set, JSON folded, pictures shown. What it says letter by letter is one click away.

const LONGEST_SET = 100_000;
const AT_A_TIME = 200;
const SHORT_JSON = 60, SMALL_JSON = 600;
const MARKDOWN_SIGNS = [
  /^ {0,3}#{1,6} \S/m,
  /^ {0,3}(?:```|~~~)/m,
  /^ {0,3}(?:[-*+]|\d{1,3}[.)]) {1,4}\S[^\n]*\n(?:\n| {0,8}[^\n]*\n)? {0,8}(?:[-*+]|\d{1,3}[.)]) {1,4}\S/m,
  /^ {0,3}\|[^\n|]{0,400}\|[^\n]{0,2000}\n {0,3}\|? {0,3}:?-{2,200}/m,
  /\*\*[^\s*][^*\n]{0,300}\*\*/,
  /!?\[[^\]\n[]{0,300}\]\([^)\s]{1,500}\)/,
];
let asWritten = false;
let markdownParser = null;

/**
 * Return an element that shows a text of a model or tool; `label` names it to who cannot see it.
 *
 * Markdown and JSON are shown as such, with a switch to the text itself, which is what checks compare.
 * `pictures` are those of the rollout's workspace, as its record has them.
 */
function answerView(text, label, pictures = []) {
  const kind = kindOf(text);
  const shown = picturesIn(text, pictures, kind === "Markdown" ? text : "");
  const own = kind ? switched(text, label, kind, pictures) : textBlock(text, label);
  return shown ? make("div", {}, own, shown) : own;
}

/** What a text is written in; empty for one that is best shown as it is, as a short one. */
function kindOf(text) {
  if (text.length > LONGEST_SET) return "";
  if (/^\s*[{[]/.test(text) && (text.trim().length > SHORT_JSON || text.includes("\\n"))) {
    try {
      JSON.parse(text);
      return "JSON";
    } catch { /* then it may be something else */ }
  }
  return byId("markdown") && MARKDOWN_SIGNS.some((sign) => sign.test(text)) ? "Markdown" : "";
}

/** A text with a switch between its two views; the last choice holds for all that are opened later. */
function switched(text, label, kind, pictures) {
  const view = make("div", {}, textBlock(text, label));
  let turn = 0;
  const show = async (raw) => {
    const own = ++turn;
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(Boolean(i) === raw)));
    if (raw) return view.replaceChildren(textBlock(text, label));
    try {
      const set = kind === "JSON" ? jsonView(text, label) : await markdownView(text, label, pictures);
      if (own === turn) view.replaceChildren(set);
    } catch (error) {
      if (own !== turn) return undefined;
      show(true);
      choice.append(make("span", { className: "soft" }, `cannot be shown as ${kind}: ${error.message}`));
    }
    return undefined;
  };
  const buttons = [[kind, false], ["raw", true]].map(([name, raw]) => {
    const button = make("button", { type: "button", title: raw ? "the text itself, which checks compare" : `shown as ${kind}` }, name);
    button.addEventListener("click", () => { asWritten = raw; show(raw); });
    return button;
  });
  const choice = make("div", { className: "choice views", role: "group", "aria-label": `view of the ${label}` }, buttons);
  show(asWritten);
  return make("div", { className: "readable" }, choice, view);
}

/** The library for Markdown, run once somebody needs it; the policy of the page allows this one text. */
function markdownLibrary() {
  markdownParser ??= whenParsed.then(() => unpack(byId("markdown").textContent)).then((code) => {
    const script = make("script", {});
    script.textContent = code;
    document.head.append(script);
    script.remove();
    return window.markdownit("default", { html: false, linkify: false, typographer: false, breaks: true });
  });
  return markdownParser;
}

async function markdownView(text, label, pictures) {
  const parser = await markdownLibrary();
  const top = make("div", { className: "markdown", role: "group", "aria-label": label, tabIndex: 0 });
  setTokens(parser.parse(text, {}), top, pictures);
  return top;
}

const SET = {
  paragraph: "p", blockquote: "blockquote", bullet_list: "ul", ordered_list: "ol", list_item: "li", table: "table", thead: "thead", tbody: "tbody",
  tr: "tr", th: "th", td: "td", em: "em", strong: "strong", s: "s",
};

/** Set what the library read, by elements of this list alone: it never makes HTML. */
function setTokens(tokens, top, pictures) {
  const path = [top];
  for (const token of tokens) {
    if (token.hidden) continue;
    const into = path.at(-1);
    if (token.type === "inline") setTokens(token.children, into, pictures);
    else if (token.nesting < 0) closeToken(path.pop());
    else if (token.nesting > 0) {
      const element = openToken(token);
      into.append(element);
      path.push(element);
    } else into.append(leafToken(token, pictures));
  }
}

function openToken(token) {
  const name = token.type.replace(/_open$/, "");
  if (name === "heading") return make("p", { className: "heading", role: "heading", "aria-level": Math.min(6, 3 + Number(token.tag.slice(1))) });
  if (name === "link") {
    const href = token.attrGet("href") || "";
    const properties = { "data-target": href, title: visible(href).slice(0, 500) };
    return /^https?:\/\//i.test(href) ? make("a", { ...properties, href, target: "_blank", rel: "noopener noreferrer" }) : make("span", properties);
  }
  const element = make(SET[name] || "span");
  if (name === "ordered_list" && token.attrGet("start")) element.start = Number(token.attrGet("start"));
  const side = name === "th" || name === "td" ? /(left|right|center)/.exec(token.attrGet("style") || "left")[1] : "";
  if (side) element.className = side;
  return element;
}

/** Say where a link leads, unless its text does. */
function closeToken(element) {
  const target = element.dataset.target;
  if (target !== undefined && target !== element.textContent) element.after(make("span", { className: "soft" }, ` (${target.slice(0, 200)})`));
}

function leafToken(token, pictures) {
  const { type, content } = token;
  if (type === "softbreak" || type === "hardbreak") return make("br");
  if (type === "hr") return make("hr");
  if (type === "code_inline") return make("code", {}, content);
  if (type === "fence" && /^json\b/.test(token.info) && kindOf(content) === "JSON") return jsonView(content, "JSON");
  if (type === "fence" || type === "code_block") return textBlock(content, "code");
  if (type === "image") return pictureNamed(token.attrGet("src") || "", token.content, pictures);
  return document.createTextNode(visible(content));
}

const TOKEN = /\s*(?:("[^"\\]*(?:\\.[^"\\]*)*")|([{}[\],:])|([^\s{}[\],:"]+))/y;

/** The parts of the object or array that starts at a place of a valid JSON text: key, start and end of each. */
function jsonParts(text, at) {
  const parts = [];
  let depth = 0, key = null, start = -1, last = null;
  TOKEN.lastIndex = at;
  for (let found = TOKEN.exec(text); found; found = TOKEN.exec(text)) {
    const [, string, mark] = found, end = TOKEN.lastIndex;
    const begin = end - (string || mark || found[3]).length;
    const closes = mark === "}" || mark === "]";
    if (depth === 1 && (mark === "," || closes) && start >= 0) {
      parts.push({ key, start, end: last });
      [key, start] = [null, -1];
    } else if (depth === 1 && mark === ":") {
      key = text.slice(start, last);
      start = -1;
    } else if (depth === 1 && start < 0 && !closes) start = begin;
    if (closes && --depth === 0) return parts;
    if (mark === "{" || mark === "[") depth++;
    last = end;
  }
  return parts;
}

/** A JSON text as a tree whose parts are made when they are opened; numbers stand as they are written. */
function jsonView(text, label) {
  const start = text.search(/\S/), parts = jsonParts(text, start), listed = text[start] === "[";
  return make("div", { className: "json", role: "group", "aria-label": label, tabIndex: 0 },
    listed ? make("p", { className: "soft" }, plural(parts.length, "item")) : null, jsonRows(text, parts, listed));
}

function jsonPart(text, { key, start, end }) {
  const name = [make("span", { className: "key" }, jsonString(key)), ": "];
  if (text[start] !== "{" && text[start] !== "[") return make("div", { className: "leaf" }, name, jsonLeaf(text.slice(start, end)));
  if (end - start <= SHORT_JSON) return make("div", { className: "leaf" }, name, text.slice(start, end));
  const parts = jsonParts(text, start), listed = text[start] === "[";
  const summary = make("summary", {}, name, make("span", { className: "soft" }, listed ? `[${plural(parts.length, "item")}]` : `{${plural(parts.length, "key")}}`));
  const details = make("details", {}, summary);
  const fill = () => { if (details.open && details.children.length === 1) details.append(jsonRows(text, parts, listed)); };
  details.addEventListener("toggle", fill);
  if (end - start <= SMALL_JSON) { details.open = true; fill(); }
  return details;
}

/** The first parts of an object or array, and more of them on demand. */
function jsonRows(text, parts, listed) {
  const box = make("div", { className: "rows-of-json" });
  const add = (from) => {
    const to = Math.min(parts.length, from + AT_A_TIME);
    for (let i = from; i < to; i++) box.append(jsonPart(text, listed ? { ...parts[i], key: String(i) } : parts[i]));
    if (to === parts.length) return;
    const more = make("button", { type: "button" }, `show more of ${whole(parts.length)}`);
    more.addEventListener("click", () => { more.remove(); add(to); });
    box.append(more);
  };
  add(0);
  return box;
}

/** What a string or a number of JSON stands for; a number stays as it is written. */
function jsonString(written) {
  return written[0] === '"' ? JSON.parse(written) : written;
}

function jsonLeaf(written) {
  if (written[0] !== '"') return make("span", { className: "value" }, written);
  const value = JSON.parse(written);
  return value.length > 200 || value.includes("\n") ? textBlock(value, "text") : make("span", { className: "string" }, written);
}

/** Pictures that a text names and no Markdown shows already. */
function picturesIn(text, pictures = [], markdown = "") {
  const rest = pictures.filter(({ name }) => text.includes(name) && !markdown.includes(`](${name})`));
  return rest.length ? make("div", { className: "pictures" }, rest.map(pictureView)) : null;
}

function pictureNamed(source, alt, pictures) {
  const found = pictures.find(({ name }) => name === source || `./${name}` === source);
  if (found) return pictureView(found);
  return make("span", { className: "soft" }, `[picture “${alt}”: ${source.slice(0, 200)} is not shown]`);
}

function pictureView({ name, type, data, why }) {
  if (!data) return make("p", { className: "soft" }, `picture ${name} is ${why}`);
  return make("figure", { className: "picture" }, make("img", { src: `data:${type};base64,${data}`, alt: name }), make("figcaption", { className: "soft" }, name));
}
