import { fstatSync, ftruncateSync, readSync, writeSync } from "node:fs";

const DIRECTORY = "/model";
const FILE_NAME = "model.h5";
/** All permissions, because the descriptor decides what the module may do. */
const DIRECTORY_MODE = 0o040_777;
const FILE_MODE = 0o100_666;
/** WASI's numbers of errors. */
const EIO = 29;
const ENOENT = 44;
const BLOCK_BYTES = 4_096;
const SEEK = { current: 1, end: 2 } as const;

/** The part of Emscripten's `FS` that a file system plugs into. */
export interface EmscriptenFs {
  readonly ErrnoError: new (errno: number) => Error;
  mkdir(path: string): void;
  mount(type: { mount(): FileNode }, options: object, mountpoint: string): void;
  createNode(parent: FileNode | null, name: string, mode: number, device: number): FileNode;
}

interface FileNode {
  readonly id: number;
  readonly mode: number;
  node_ops: object;
  stream_ops: object;
}

interface FileStream {
  position: number;
}

/**
 * A file system for a WebAssembly module that holds one open file, so that the module can open no
 * other. It remembers the first error of the operating system, because the module only tells that
 * something failed.
 */
export class SingleFileSystem {
  /** Where the module finds the file. */
  readonly path = `${DIRECTORY}/${FILE_NAME}`;
  readonly #descriptor: number;
  readonly #fs: EmscriptenFs;
  #failure: { readonly action: string; readonly cause: unknown } | undefined;

  private constructor(fs: EmscriptenFs, descriptor: number) {
    this.#fs = fs;
    this.#descriptor = descriptor;
  }

  /** Mounts the file with this descriptor, which the caller closes. */
  static mount(fs: EmscriptenFs, descriptor: number): SingleFileSystem {
    const system = new SingleFileSystem(fs, descriptor);
    fs.mkdir(DIRECTORY);
    fs.mount({ mount: () => system.#root() }, {}, DIRECTORY);
    return system;
  }

  /** The first error of the operating system. */
  get failure(): { readonly action: string; readonly cause: unknown } | undefined {
    return this.#failure;
  }

  #root(): FileNode {
    const root = this.#node(null, "/", DIRECTORY_MODE);
    this.#node(root, FILE_NAME, FILE_MODE);
    return root;
  }

  #node(parent: FileNode | null, name: string, mode: number): FileNode {
    const node = this.#fs.createNode(parent, name, mode, 0);
    node.node_ops = {
      // The one file was added before, so no lookup finds anything else.
      lookup: () => {
        throw new this.#fs.ErrnoError(ENOENT);
      },
      getattr: (of: FileNode) => this.#attributes(of),
      setattr: (_: FileNode, { size }: { size?: number }) => {
        if (size !== undefined) this.#run("resize", () => ftruncateSync(this.#descriptor, size));
      },
    };
    node.stream_ops = {
      llseek: (stream: FileStream, offset: number, whence: number) =>
        offset + this.#seekBase(stream, whence),
      read: (_: FileStream, target: Uint8Array, at: number, length: number, position: number) =>
        this.#run("read", () => readSync(this.#descriptor, target, at, length, position)),
      write: (_: FileStream, source: Uint8Array, at: number, length: number, position: number) =>
        this.#run("write", () => writeSync(this.#descriptor, source, at, length, position)),
    };
    return node;
  }

  #seekBase(stream: FileStream, whence: number): number {
    if (whence === SEEK.current) return stream.position;
    return whence === SEEK.end ? this.#size() : 0;
  }

  #attributes({ id, mode }: FileNode): object {
    const size = mode === FILE_MODE ? this.#size() : BLOCK_BYTES;
    const time = new Date(0);
    const times = { atime: time, mtime: time, ctime: time };
    const owner = { dev: 1, ino: id, mode, nlink: 1, uid: 0, gid: 0, rdev: 0 };
    return {
      ...owner,
      ...times,
      size,
      blksize: BLOCK_BYTES,
      blocks: Math.ceil(size / BLOCK_BYTES),
    };
  }

  #size(): number {
    return this.#run("examine", () => fstatSync(this.#descriptor).size);
  }

  #run<T>(action: string, operation: () => T): T {
    try {
      return operation();
    } catch (cause) {
      this.#failure ??= { action, cause };
      throw new this.#fs.ErrnoError(EIO);
    }
  }
}
