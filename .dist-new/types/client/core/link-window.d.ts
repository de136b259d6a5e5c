/**
 * How many bytes may be under way on a link: what it has lately carried in 1.5 s, within limits. So a slow link is not
 * buried under what it cannot carry soon, and a fast one is filled after its first answers. It reads no clock.
 */
export declare class LinkWindow {
    #private;
    constructor(bytesMax: number);
    /** Bytes that may be under way. */
    get bytes(): number;
    /** Notes that so many bytes have arrived in a time that ends now, in which the link had work. */
    note(bytes: number, ms: number, nowMs: number): void;
    /** Forgets what was measured: the connection is another one. */
    reset(): void;
}
//# sourceMappingURL=link-window.d.ts.map