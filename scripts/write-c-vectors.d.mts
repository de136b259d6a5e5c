/** The header of the vectors in a directory. */
export declare function renderVectors(directory: string): string;
