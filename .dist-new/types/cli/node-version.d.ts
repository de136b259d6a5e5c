/** Ends the process with one line if this Node.js is too old for what the program imports next. */
export declare function checkNodeVersion(program: string): void;
//# sourceMappingURL=node-version.d.ts.map