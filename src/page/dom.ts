/** What an element is made of: text, which is never read as HTML, and other elements. */
export type Content = string | number | Node | readonly Content[] | undefined | false;

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

/**
 * Replaces what an element contains, as {@link fill} does, for what is drawn again and again: a part that is scrolled
 * stays so, and the focus stays with what has the same label.
 */
export function refill(element: Element, ...content: Content[]): void {
  const { activeElement } = document;
  const hasFocus = activeElement !== null && element.contains(activeElement);
  const focused = hasFocus ? activeElement.getAttribute("aria-label") : null;
  const scrolled = new Map(
    [...element.querySelectorAll(".wide")].map((part) => [part.ariaLabel, part.scrollLeft]),
  );
  fill(element, ...content);
  for (const part of element.querySelectorAll(".wide")) {
    part.scrollLeft = scrolled.get(part.ariaLabel) ?? 0;
  }
  if (focused === null) return;
  const same = element.querySelector<HTMLElement>(`[aria-label="${CSS.escape(focused)}"]`);
  same?.focus({ preventScroll: true });
}

function append(element: Element, content: readonly Content[]): void {
  for (const part of content) {
    if (part === undefined || part === false) continue;
    if (Array.isArray(part)) append(element, part);
    else element.append(part instanceof Node ? part : String(part));
  }
}

/** A column of a table. */
export interface Column<Row> {
  readonly title: string;
  /** What the title means, where its words leave that open: units, and how it is measured. */
  readonly hint?: string;
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
  if (rows.length === 0) return make("p", { class: "empty" }, none);
  const classOf = ({ isNumber, className }: Column<Row>): string =>
    [isNumber ? "number" : "", className ?? ""].join(" ").trim();
  const head = columns.map((column) =>
    make("th", { scope: "col", class: classOf(column), title: column.hint }, column.title),
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

/** A fact with its name, and what may be said besides. */
export type Fact = readonly [name: string, value: Content, more?: Content];

/** Makes a list of facts, each with its name. */
export function facts(entries: readonly Fact[]): HTMLElement {
  return make(
    "dl",
    { class: "facts" },
    entries.map(([name, value, more]) =>
      make(
        "div",
        {},
        make("dt", {}, name),
        make("dd", {}, value),
        more !== undefined && make("dd", { class: "more" }, more),
      ),
    ),
  );
}

/** Makes the head of a section: its title, and what is said of all of it. */
export function head(title: string, ...more: Content[]): HTMLElement {
  return make("div", { class: "head" }, make("h2", {}, title), ...more);
}

/** Makes a line that says what is going on, and is read out when it changes. */
export function statusLine(...content: Content[]): HTMLElement {
  return make("p", { class: "soft told", role: "status" }, ...content);
}

/** Makes a command that can be copied. */
export function command(text: string): HTMLElement {
  const copy = make(
    "button",
    {
      type: "button",
      class: "quiet",
      "aria-label": `copy the command ${text}`,
      onclick: () => {
        void navigator.clipboard.writeText(text).then(() => fill(copy, "Copied"));
      },
    },
    "Copy",
  );
  // Browsers copy for pages of this machine, and by TLS.
  return make("div", { class: "command" }, make("code", {}, text), window.isSecureContext && copy);
}

/** Makes a button that looks like a link. */
export function link(text: string, onClick: () => void, label?: string): HTMLElement {
  return make(
    "button",
    { type: "button", class: "link", onclick: () => onClick(), "aria-label": label },
    text,
  );
}
