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
  const response = await authorized(path, signal);
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
export async function* listen(path: string, signal: AbortSignal): AsyncGenerator<LiveEvent> {
  const response = await authorized(path, signal);
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

async function authorized(path: string, signal: AbortSignal): Promise<Response> {
  const token = sessionStorage.getItem(TOKEN_KEY);
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  const response = await fetch(`api/${path}`, { headers, signal });
  if (response.ok) return response;
  const { error } = (await response.json()) as { error: { code: string; message: string } };
  if (response.status !== 401) throw new ApiError(error.code, error.message);
  const given = window.prompt("The token of this server (--http-token):");
  if (given === null || given === "") throw new ApiError(error.code, error.message);
  sessionStorage.setItem(TOKEN_KEY, given.trim());
  return await authorized(path, signal);
}

/** Describes an error for people. */
export function errorText(error: unknown): string {
  if (error instanceof ApiError) return `${error.code}: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}
