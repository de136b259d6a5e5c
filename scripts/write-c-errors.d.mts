import type * as protocol from "../src/protocol/index.ts";

export declare function renderErrorHeader(codes: typeof protocol.ERROR_CODES): string;
export declare function renderProtocolHeader(exports: typeof protocol): string;
