type Codes = Readonly<
  Record<string, { readonly number: number; readonly retryable: boolean; readonly meaning: string }>
>;

export declare function renderErrorHeader(codes: Codes): string;
export declare function renderRefusalHeader(
  numbers: readonly number[],
  codeOf: (number: number) => string,
): string;
