interface Row {
  readonly number: number;
  readonly retryable: boolean;
  readonly meaning: string;
}

export declare function renderErrorTable<Code extends string>(
  codes: Readonly<Record<Code, Row>>,
  words: {
    readonly REACTIONS: Readonly<Record<string, string>>;
    readonly REJECTION_REACTIONS: Readonly<Record<string, string>>;
    readonly reactionTo: (code: Code) => string;
    readonly reactionToRejection: (code: Code) => string;
  },
): string;
export declare function renderLimitTable(
  source: string,
  values: Readonly<Record<string, unknown>>,
): string;
export declare function replaceTable(text: string, table: string): string;
