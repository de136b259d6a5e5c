type Codes = Readonly<
  Record<string, { readonly number: number; readonly retryable: boolean; readonly meaning: string }>
>;

export declare function renderErrorModule(codes: Codes): string;
