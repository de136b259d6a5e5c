/** What an element is made of: text, which is never read as HTML, and other elements. */
export type Content = string | number | Node | readonly Content[] | undefined;

/** Attributes of an element by name; a function is a listener of the event with the name behind `on`. */
type Attributes = Readonly<Record<string, string | number | boolean | EventListener | undefined>>;

/** Makes an element. Attributes that are undefined or false are left out. */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...content: Content[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else if (value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, content);
  return element;
}

/** Replaces what an element contains. */
export function fill(element: Element, ...content: Content[]): void {
  element.replaceChildren();
  append(element, content);
}

function append(element: Element, content: readonly Content[]): void {
  for (const part of content) {
    if (part === undefined) continue;
    if (Array.isArray(part)) append(element, part);
    else element.append(part instanceof Node ? part : String(part));
  }
}

/** A column of a table. */
export interface Column<Row> {
  readonly title: string;
  readonly isNumber?: boolean;
  readonly className?: string;
  cell(row: Row): Content;
}

/** Makes a table, which scrolls by itself where it is too wide; `caption` names it for those who do not see it. */
export function table<Row>(
  caption: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  none: string,
): HTMLElement {
  if (rows.length === 0) return make("p", { class: "soft" }, none);
  const classOf = ({ isNumber, className }: Column<Row>): string =>
    [isNumber ? "number" : "", className ?? ""].join(" ").trim();
  const head = columns.map((column) =>
    make("th", { scope: "col", class: classOf(column) }, column.title),
  );
  const body = rows.map((row) =>
    make(
      "tr",
      {},
      columns.map((column) => make("td", { class: classOf(column) }, column.cell(row))),
    ),
  );
  return make(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": caption },
    make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)),
  );
}

/** Makes a list of facts, each with its name. */
export function facts(entries: readonly (readonly [name: string, value: Content])[]): HTMLElement {
  return make(
    "dl",
    { class: "facts" },
    entries.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))),
  );
}

/** Makes a button that looks like a link. */
export function link(text: string, onClick: () => void, label?: string): HTMLElement {
  return make(
    "button",
    { type: "button", class: "link", onclick: () => onClick(), "aria-label": label },
    text,
  );
}
