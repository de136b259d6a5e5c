const SCHEME = /^[a-z]{1,8}:\/\//i;
const HOST_PORT = /^(?:\[[0-9a-f:.]+\]|[^\s:@/?#[\],]{1,255})(?::\d{1,5})?\/?$/i;

/**
 * An address for messages: never its credentials, in whatever form they are. Shown are the scheme, `…@`
 * for anything before the last `@`, and host and port if the rest is just that, else `…`: a password
 * that is not escaped can make the rest of it look like a path or a port.
 */
export function showUrl(url: string): string {
  const scheme = SCHEME.exec(url)?.[0] ?? "";
  const rest = url.slice(scheme.length);
  const at = rest.lastIndexOf("@");
  const host = rest.slice(at + 1);
  return `${scheme}${at < 0 ? "" : "…@"}${HOST_PORT.test(host) ? host : "…"}`;
}

/**
 * One address of a list for messages, as {@link showUrl} shows it. Of text with commas and an `@` the
 * whole is shown, because a comma in a password makes addresses of its pieces.
 */
export function showListed(list: string | readonly string[], entry: string): string {
  return showUrl(typeof list === "string" && list.includes("@") ? list : entry);
}
