import { createServer, type Server } from "node:net";

/**
 * Ports of 127.0.0.1 that nothing listens on at the moment, for programs that must be told theirs. Others
 * may be given them until the program listens: start it again with other ports if it fails.
 */
export async function freePorts(count: number): Promise<number[]> {
  // All at once, so that they differ.
  const servers = await Promise.all(Array.from({ length: count }, listen));
  return await Promise.all(servers.map(closeAndTellPort));
}

async function listen(): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve);
  });
  return server;
}

async function closeAndTellPort(server: Server): Promise<number> {
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("it listens on no port");
  await new Promise((resolve) => server.close(resolve));
  return address.port;
}
