const SCHEME = /^[a-z]{1,8}:\/\//i;
const HOST_PORT = /^(?:\[[0-9a-f:.]+\]|[^\s:@/?#[\],]{1,255})(?::\d{1,5})?\/?$/i;

/**
 * An address for messages, without credentials, whatever their form: the scheme, `…@` for anything
 * before the last `@`, and the rest if it is host and port, else `…`: a password that is not escaped
 * can continue there as a path or a port.
 */
export function showUrl(url: string): string {
  const scheme = SCHEME.exec(url)?.[0] ?? "";
  const rest = url.slice(scheme.length);
  const at = rest.lastIndexOf("@");
  const host = rest.slice(at + 1);
  return `${scheme}${at < 0 ? "" : "…@"}${HOST_PORT.test(host) ? host : "…"}`;
}

/**
 * One address of a list for messages, as {@link showUrl} shows it. For text with commas and an `@` the
 * whole text is shown that way, because a comma may be in a password.
 */
export function showListed(list: string | readonly string[], entry: string): string {
  return showUrl(typeof list === "string" && list.includes("@") ? list : entry);
}
