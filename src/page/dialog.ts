import { type Content, make } from "./dom.ts";

/** A dialog that is open. */
interface OpenDialog {
  /** Settles when it has been closed, by the reader or by `close`. */
  readonly closed: Promise<void>;
  close(): void;
}

/** Opens a dialog over the page; Escape and its button close it, and the focus returns to where it was. */
export function openDialog(title: string, ...content: Content[]): OpenDialog {
  const dialog = make(
    "dialog",
    { "aria-labelledby": "dialog-title" },
    make(
      "div",
      { class: "dialog-head" },
      make("h2", { id: "dialog-title" }, title),
      make(
        "button",
        { type: "button", class: "quiet", onclick: () => dialog.close(), "aria-label": "Close" },
        "✕",
      ),
    ),
    ...content,
  );
  const closed = new Promise<void>((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve();
    });
  });
  document.body.append(dialog);
  dialog.showModal();
  return { closed, close: () => dialog.close() };
}
