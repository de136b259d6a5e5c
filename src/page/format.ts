const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** Writes a number of bytes: `512 B`, `1.5 MiB`. */
export function bytesText(bytes: number): string {
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(size < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

/** Writes a number in few characters; one that JSON cannot have comes as text. */
export function numberText(value: number | string | undefined | null): string {
  if (value === undefined || value === null) return "–";
  if (typeof value === "string") return value;
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return value.toLocaleString("en-US");
  return size >= 1e-3 && size < 1e6 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
}

/** Writes a rate, a second: one decimal below 100. */
export function rateText(perSecond: number | undefined): string {
  if (perSecond === undefined) return "–";
  return perSecond < 99.95 ? perSecond.toFixed(1) : Math.round(perSecond).toLocaleString("en-US");
}

/** Writes a part of a whole: `0.4 %`, `62 %`. */
export function shareText(part: number, whole: number): string {
  const percent = whole === 0 ? 0 : (100 * part) / whole;
  return `${percent > 0 && percent < 10 ? percent.toFixed(1) : percent.toFixed(0)} %`;
}

/** Writes a number of things: `1 shard`, `16 shards`. */
export function countText(count: number, thing: string): string {
  return `${count.toLocaleString("en-US")} ${thing}${count === 1 ? "" : "s"}`;
}

/** Writes whole numbers in ascending order in short: `0–3, 7`. */
export function rangesText(numbers: readonly number[]): string {
  const ranges: [from: number, to: number][] = [];
  for (const number of numbers) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === number - 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ");
}

/** Writes how long something has been: `3 s`, `5 min`. */
export function ageText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** Writes a time as the reader's clock shows it, with the date where it is not today's. */
export function timeText(timeMs: number): string {
  const time = new Date(timeMs);
  const isToday = time.toDateString() === new Date().toDateString();
  const clock = time.toLocaleTimeString([], { hour12: false });
  return isToday ? clock : `${time.toLocaleDateString()} ${clock}`;
}

/** Writes a shape: `64 × 32`. */
export function shapeText(shape: readonly number[]): string {
  return shape.length === 0 ? "scalar" : shape.join(" × ");
}
