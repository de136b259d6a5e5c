/**
 * Makes the kernels of a process and its threads throw for certain values, where they are called for them: loaded
 * before a program, by node's `--import`. A mix by `BAD_BETA` cannot be applied, and float32 elements that begin with
 * `BAD_ELEMENT` cannot be measured.
 */
const BAD_BETA = 666;
const BAD_ELEMENT = 667;

type Kernel = (...args: readonly number[]) => unknown;

const { Instance } = WebAssembly;

class FaultyInstance {
  readonly exports: Readonly<Record<string, unknown>>;

  constructor(...args: ConstructorParameters<typeof Instance>) {
    const memory = args[1]["env"]?.["memory"];
    const kernels = Object.entries(new Instance(...args).exports).map(([name, kernel]) => {
      const isCode = typeof kernel === "function";
      return [name, isCode ? faulty(name, kernel as Kernel, memory) : kernel] as const;
    });
    this.exports = Object.fromEntries(kernels);
  }
}

function faulty(name: string, kernel: Kernel, memory: WebAssembly.Memory | undefined): Kernel {
  return (...args) => {
    if (name.startsWith("mix") && args.includes(BAD_BETA)) throw new TypeError("a faulty mix");
    const isBad = name === "measureF32" && firstOf(memory, args[0]) === BAD_ELEMENT;
    if (isBad) throw new TypeError("a faulty measure");
    return kernel(...args);
  };
}

function firstOf(memory: WebAssembly.Memory | undefined, pointer = 0): number | undefined {
  return memory && new DataView(memory.buffer).getFloat32(pointer, true);
}

Reflect.set(WebAssembly, "Instance", FaultyInstance);
