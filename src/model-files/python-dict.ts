/** A value of a {@link parsePythonDict} dictionary; tuples and lists are arrays. */
export type PythonValue = string | boolean | number | readonly PythonValue[];

// Each token is found in one step without going back, so hostile text costs no more than its length.
const TOKEN =
  /\s*(?:'([^'\\\n]*)'|"([^"\\\n]*)"|(\d+)L?(?![A-Za-z0-9_])|(True|False)(?![A-Za-z0-9_])|([{}()[\],:]))/y;
const DEPTH_MAX = 8;
const CLOSING: Readonly<Record<string, string>> = { "(": ")", "[": "]" };

interface Token {
  readonly mark: string;
  readonly value: PythonValue | undefined;
}

/**
 * Parses a Python dictionary as in array headers: strings without escapes, `True`, `False`, whole
 * numbers, tuples and lists. `undefined` for anything else, and if a key occurs twice.
 */
export function parsePythonDict(text: string): Map<string, PythonValue> | undefined {
  const tokens = tokensOf(text.trim());
  if (tokens === undefined || tokens[0]?.mark !== "{") return undefined;
  const reader = new TokenReader(tokens, 1);
  const dict = new Map<string, PythonValue>();
  while (!reader.take("}")) {
    const key = reader.value(0);
    if (typeof key !== "string" || dict.has(key) || !reader.take(":")) return undefined;
    const value = reader.value(0);
    if (value === undefined) return undefined;
    dict.set(key, value);
    if (!reader.take(",") && !reader.sees("}")) return undefined;
  }
  return reader.atEnd() ? dict : undefined;
}

class TokenReader {
  readonly #tokens: readonly Token[];
  #next: number;

  constructor(tokens: readonly Token[], next: number) {
    this.#tokens = tokens;
    this.#next = next;
  }

  atEnd(): boolean {
    return this.#next === this.#tokens.length;
  }

  sees(mark: string): boolean {
    return this.#tokens[this.#next]?.mark === mark;
  }

  take(mark: string): boolean {
    if (!this.sees(mark)) return false;
    this.#next++;
    return true;
  }

  /** The value that begins here, or `undefined` if none does. */
  value(depth: number): PythonValue | undefined {
    const token = this.#tokens[this.#next++];
    if (token === undefined || token.value !== undefined) return token?.value;
    const closing = CLOSING[token.mark];
    if (closing === undefined || depth === DEPTH_MAX) return undefined;
    const values: PythonValue[] = [];
    while (!this.take(closing)) {
      const value = this.value(depth + 1);
      if (value === undefined || (!this.take(",") && !this.sees(closing))) return undefined;
      values.push(value);
    }
    return values;
  }
}

function tokensOf(text: string): Token[] | undefined {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  for (let end = 0; end < text.length; end = TOKEN.lastIndex) {
    const match = TOKEN.exec(text);
    if (match === null) return undefined;
    const [, single, double, digits, word, mark = ""] = match;
    const number = digits === undefined ? undefined : Number(digits);
    const boolean = word === undefined ? undefined : word === "True";
    tokens.push({ mark, value: single ?? double ?? number ?? boolean });
  }
  return tokens;
}
