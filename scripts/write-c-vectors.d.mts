/** Returns the header of the vectors in a directory. */
export declare function renderVectors(directory: string): string;

/** Returns the header of the refused calls in a directory. */
export function renderRefusals(directory: string): string;

/** Returns the header of the reads in a directory. */
export function renderReads(directory: string): string;
