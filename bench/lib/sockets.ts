import type { Sink } from './sink.ts';
import type { Target } from './target.ts';

/** Sockets per user: Collab's default limit. */
export const socketsPerUser = 20;

/** Opens authenticated sockets, twenty per user, each with its own token like each page load. */
export async function openSockets(sink: Sink, target: Target, count: number): Promise<void> {
  const headers = Array.from({ length: count }, (_, i) =>
    target.socketHeaders(`user-${Math.floor(i / socketsPerUser)}`),
  );
  const lost = await sink.open({ port: target.server.port, path: '/api/v1/ws', headers, greeted: target.greets });
  if (lost > 0)
    console.error(`${target.name} cut off ${lost} of ${count} sockets while they opened; they were opened again`);
}
