import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileError } from "../system/file-errors.ts";
import { type HttpAnswer, notFound, type Route } from "./http-server.ts";

/** The files of the page, and their types. */
const FILES = {
  "index.html": "text/html; charset=utf-8",
  "page.css": "text/css; charset=utf-8",
  "page.js": "text/javascript; charset=utf-8",
} as const;

type PageFile = keyof typeof FILES;

/** What the page may do: run its own script, and ask its own server. Nothing is loaded from elsewhere. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Makes the route `/`, the document of the page in a directory. It holds nothing of any job, so it needs no token. */
export function pageRoute(directory: string): Route {
  return { isProtected: false, answer: () => pageFile(directory, "index.html") };
}

/** Makes the route `/page`, the script and the style sheet of the page. */
export function pageFilesRoute(directory: string): Route {
  return {
    isProtected: false,
    answer: ({ path }) => {
      const [, name = "", ...rest] = path;
      if (rest.length > 0 || !Object.hasOwn(FILES, name)) throw notFound(`/${path.join("/")}`);
      return pageFile(directory, name as PageFile);
    },
  };
}

async function pageFile(directory: string, name: PageFile): Promise<HttpAnswer> {
  const file = join(directory, name);
  const body = await readFile(file, "utf8").catch((cause: unknown) => {
    throw fileError("read the page in", file, cause);
  });
  return { status: 200, contentType: FILES[name], body, policy: POLICY };
}
