/** What the parent asks an agent to do. */
interface AgentRequest {
  readonly id: number;
  readonly command: string;
  readonly args: unknown;
}

/** What the agent answers: a result, or the text of an error. */
export type AgentReply =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: string };

/**
 * Makes this process an agent: it runs the commands that its parent sends over Node's channel
 * between processes, several at a time, and ends when the parent disconnects or is gone.
 */
export function serveAgent(commands: object): void {
  process.on("message", (request: AgentRequest) => {
    const { id } = request;
    run(commands, request).then(
      (result) => answer({ id, result }),
      (error: unknown) => answer({ id, error: textOf(error) }),
    );
  });
  process.once("disconnect", () => process.exit(0));
}

async function run(commands: object, { command, args }: AgentRequest): Promise<unknown> {
  const handler: unknown = Reflect.get(commands, command);
  if (typeof handler !== "function") throw new Error(`no such command: ${command}`);
  const result: unknown = await handler.call(commands, args);
  return result;
}

function answer(reply: AgentReply): void {
  process.send?.(reply);
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Returns the milliseconds of the machine's monotonic clock, which all its processes share. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
