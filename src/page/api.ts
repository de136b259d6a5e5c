import { openDialog } from "./dialog.ts";
import { make } from "./dom.ts";

/** An error that the server has answered. */
class ApiError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

const TOKEN_KEY = "pserver-token";

/** Asks the server for JSON below `/api`. @throws ApiError; the reason of the signal. */
export async function ask<Value>(path: string, signal: AbortSignal): Promise<Value> {
  const response = await authorized(path, { signal });
  return (await response.json()) as Value;
}

/** Pause before a server that folds journals for another request is asked again. */
const BUSY_MS = 700;

/**
 * Asks for something for which journals are folded; the server does that for one request at a time, so this waits for
 * its turn. @throws as {@link ask}.
 */
export async function askInTurn<Value>(path: string, signal: AbortSignal): Promise<Value> {
  while (true) {
    try {
      return await ask<Value>(path, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "BUSY") throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
    signal.throwIfAborted();
  }
}

/** Returns the path of something of a job, with a query. */
export function jobPath(
  job: string,
  detail: string,
  query: Readonly<Record<string, string>> = {},
): string {
  const text = new URLSearchParams(query).toString();
  return `jobs/${encodeURIComponent(job)}/${detail}${text === "" ? "" : `?${text}`}`;
}

/** An event that the server has sent. */
export interface LiveEvent {
  readonly event: string;
  readonly data: unknown;
}

/**
 * Yields the events of a stream until it ends. `EventSource` cannot send a token, so the stream is read here.
 * @throws ApiError; an error if the connection breaks; the reason of the signal.
 */
export function listen(path: string, signal: AbortSignal): AsyncGenerator<LiveEvent> {
  return eventsOf(path, { signal });
}

/**
 * Asks the server for a change, and yields what it says about it until that has ended.
 * @throws as {@link listen}. The change goes on if the connection breaks.
 */
export function change(path: string, body: unknown): AsyncGenerator<LiveEvent> {
  const headers = { "Content-Type": "application/json" };
  return eventsOf(path, { method: "POST", headers, body: JSON.stringify(body) });
}

async function* eventsOf(path: string, request: RequestInit): AsyncGenerator<LiveEvent> {
  const response = await authorized(path, request);
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (true) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop() ?? "";
    for (const part of parts) {
      const event = /^event: (.*)$/m.exec(part)?.[1];
      const data = /^data: (.*)$/m.exec(part)?.[1];
      if (event !== undefined && data !== undefined) yield { event, data: JSON.parse(data) };
    }
  }
}

/** Sends a request with the token; asks for that where the server wants it. */
async function authorized(path: string, request: RequestInit): Promise<Response> {
  while (true) {
    const token = sessionStorage.getItem(TOKEN_KEY);
    const headers = new Headers(request.headers);
    if (token !== null) headers.set("Authorization", `Bearer ${token}`);
    const response = await fetch(`api/${path}`, { ...request, headers });
    if (response.ok) return response;
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    if (response.status !== 401) throw new ApiError(error.code, error.message);
    // Another request may have been told the token meanwhile.
    if (sessionStorage.getItem(TOKEN_KEY) === token && !(await askToken(token !== null))) {
      throw new ApiError(error.code, error.message);
    }
  }
}

let asking: Promise<boolean> | undefined;

/** Asks the reader for the token, once however many requests need it; returns whether one was given. */
function askToken(wasWrong: boolean): Promise<boolean> {
  asking ??= openTokenDialog(wasWrong).finally(() => {
    asking = undefined;
  });
  return asking;
}

async function openTokenDialog(wasWrong: boolean): Promise<boolean> {
  const token = make("input", { type: "password", autocomplete: "off", required: true, size: 40 });
  let isGiven = false;
  const dialog = openDialog(
    "This server asks for its token",
    make("p", { class: "soft" }, "It is in the file that the server was given as --http-token."),
    wasWrong && make("p", { class: "bad", role: "alert" }, "✕ That is not the token."),
    make(
      "form",
      {
        class: "controls",
        onsubmit: (event: Event) => {
          event.preventDefault();
          sessionStorage.setItem(TOKEN_KEY, token.value.trim());
          isGiven = true;
          dialog.close();
        },
      },
      make("label", { class: "field" }, "Token", token),
      make("button", { type: "submit", class: "primary" }, "Continue"),
    ),
  );
  token.focus();
  await dialog.closed;
  return isGiven;
}

/** Describes an error for people. */
export function errorText(error: unknown): string {
  if (error instanceof ApiError) return `${error.code}: ${error.message}`;
  if (error instanceof TypeError) return "the server does not answer";
  return error instanceof Error ? error.message : String(error);
}
