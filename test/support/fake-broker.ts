import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { TLSSocket } from "node:tls";

/** How a {@link FakeBroker} shows itself. */
export interface FakeBrokerOptions {
  /** 0 or absent: any free port. */
  readonly port?: number;
  /** PEM texts: then it asks for TLS, else it offers none. */
  readonly tls?: { readonly key: string; readonly cert: string };
  /** Further entries of its greeting, or those of the connection with this number, from 1 on. */
  readonly info?:
    | Readonly<Record<string, unknown>>
    | ((connection: number) => Readonly<Record<string, unknown>>);
  /**
   * Whether it refuses the credentials in a client's first line, CONNECT with JSON, or says nothing from then on; by
   * default it lets all in.
   */
  readonly welcome?: (connect: string) => "accept" | "refuse" | "ignore";
  /** What it answers to a request under a subject; without it, or for undefined, nothing. */
  readonly answer?: (subject: string) => string | undefined;
}

/** As much of a broker as lets clients connect; it keeps what they send. */
export interface FakeBroker {
  readonly port: number;
  /** Connections that were made to it. */
  readonly dialled: number;
  /** All that clients sent outside of TLS handshakes, or inside of TLS. */
  readonly received: string;
  /** Breaks every connection and listens no more. */
  close(): Promise<void>;
}

function infoOf(
  { info }: FakeBrokerOptions,
  connection: number,
): Readonly<Record<string, unknown>> {
  return typeof info === "function" ? info(connection) : (info ?? {});
}

/** Starts one on 127.0.0.1. */
export async function startFakeBroker(options: FakeBrokerOptions = {}): Promise<FakeBroker> {
  const sockets = new Set<Socket>();
  let received = "";
  let dialled = 0;
  const listen = (socket: Socket): void => {
    const subscriptions = new Map<string, string>();
    let welcome: "accept" | "refuse" | "ignore" = "accept";
    socket.on("data", (bytes) => {
      const text = bytes.toString("latin1");
      received += text;
      if (text.startsWith("CONNECT ")) {
        welcome = options.welcome?.(text.split("\r\n")[0] ?? "") ?? "accept";
        if (welcome === "refuse") socket.end("-ERR 'Authorization Violation'\r\n");
      }
      if (welcome !== "accept") return;
      if (text.includes("PING\r\n")) socket.write("PONG\r\n");
      for (const [, subject, id] of text.matchAll(/^SUB (\S+) (?:\S+ )?(\S+)\r$/gm)) {
        subscriptions.set(String(subject).replace(/[*>]$/, ""), String(id));
      }
      for (const [, subject, reply] of text.matchAll(/^H?PUB (\S+) (\S+) (?:\d+ )?\d+\r$/gm)) {
        const answer = options.answer?.(String(subject));
        const id = [...subscriptions].find(([start]) => reply?.startsWith(start))?.[1];
        if (answer === undefined || id === undefined) continue;
        socket.write(`MSG ${reply} ${id} ${Buffer.byteLength(answer)}\r\n${answer}\r\n`);
      }
    });
  };
  const server = createServer((socket) => {
    dialled++;
    sockets.add(socket);
    // A client that refuses the greeting, or the certificate, leaves.
    socket.on("error", () => undefined);
    const { port } = server.address() as AddressInfo;
    const info = { server_id: "fake", version: "2.12.0", proto: 1, headers: true, port };
    const greeting = { ...info, max_payload: 1 << 20, ...infoOf(options, dialled) };
    const { tls } = options;
    if (tls === undefined) {
      socket.write(`INFO ${JSON.stringify(greeting)}\r\n`);
      listen(socket);
      return;
    }
    socket.write(`INFO ${JSON.stringify({ ...greeting, tls_required: true })}\r\n`);
    const secure = new TLSSocket(socket, { isServer: true, ...tls });
    secure.on("error", () => undefined);
    listen(secure);
  });
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get dialled(): number {
      return dialled;
    },
    get received(): string {
      return received;
    },
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
