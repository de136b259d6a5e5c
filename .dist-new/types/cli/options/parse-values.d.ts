/** Makes a parser of whole numbers from `min` to `max`. */
export declare function wholeNumber(min: number, max: number): (text: string) => number;
/** Parses a finite number, such as `0.01` or `-1e-3`. */
export declare function finiteNumber(text: string): number;
/** Parses a finite number above 0. */
export declare function positiveNumber(text: string): number;
/** Parses bytes: `1048576`, `512MB` (powers of 1000) or `1GiB` (powers of 1024). */
export declare function parseSize(text: string): number;
/** Makes a parser of bytes as {@link parseSize} that accepts `mib` MiB or more. */
export declare function sizeOfAtLeast(mib: number): (text: string) => number;
/** Parses a time, as `500ms`, `5s`, `1m30s` or a bare number of seconds; returns milliseconds. */
export declare function parseTimeout(text: string): number;
/** Parses the name of a job. */
export declare function parseJob(text: string): string;
/** Parses the id of a trainer or host. */
export declare function parseId(text: string): string;
/** Parses addresses of one etcd, with commas between them. */
export declare function parseEndpoints(text: string): string[];
/** Parses the prefix of keys in etcd. */
export declare function parsePrefix(text: string): string;
/** Parses addresses of the broker without credentials, which may be published. */
export declare function parseAdvertised(text: string): string[];
//# sourceMappingURL=parse-values.d.ts.map