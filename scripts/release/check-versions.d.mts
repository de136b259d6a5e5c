interface NamedVersion {
  readonly file: string;
  readonly version: string;
}

export declare function findVersions(root: string): Promise<NamedVersion[]>;
export declare function differences(versions: readonly NamedVersion[]): string[];
