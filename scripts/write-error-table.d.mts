type Codes = Readonly<
  Record<string, { readonly number: number; readonly retryable: boolean; readonly meaning: string }>
>;

export declare function renderErrorTable(codes: Codes): string;
export declare function replaceErrorTable(text: string, table: string): string;
