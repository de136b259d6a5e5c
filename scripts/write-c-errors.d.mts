type Codes = Readonly<
  Record<string, { readonly number: number; readonly retryable: boolean; readonly meaning: string }>
>;

export declare function renderErrorHeader(codes: Codes): string;
export declare function renderReactionHeader<Code extends string>(
  codes: Readonly<Record<Code, unknown>>,
  words: {
    readonly REACTIONS: Readonly<Record<string, string>>;
    readonly REJECTION_REACTIONS: Readonly<Record<string, string>>;
    readonly reactionTo: (code: Code) => string;
    readonly reactionToRejection: (code: Code) => string;
  },
): string;
export declare function renderRefusalHeader(
  numbers: readonly number[],
  codeOf: (number: number) => string,
): string;
