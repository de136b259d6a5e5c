/** The greeting of a broker, as a line. */
export function greetingLine(entries: Readonly<Record<string, unknown>> = {}): string {
  const info = { server_id: "T", version: "2.12.15", proto: 1, headers: true, ...entries };
  return `INFO ${JSON.stringify({ max_payload: 8 << 20, ...info })}\r\n`;
}
