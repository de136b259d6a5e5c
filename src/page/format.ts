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
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e6 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
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
