import type { Engine } from './engines.ts';
import type { ServerProcess } from './server-process.ts';

/** The columns of every table, in order. */
export const names = [
  'collab',
  'collab before',
  'collab, Redis',
  'collab, 2 nodes',
  'collab, folder',
  'collab, 2 workers',
  'collab, core node',
  'collab, 1 filter',
  'collab, 3 actions, webhook',
  'collab, backlog',
  'bare uWS',
  'Fastify + SQLite',
  'Fastify + PostgreSQL',
  'Fastify + PostgreSQL, notifications',
  'nginx',
  'bare sharp',
] as const;
export type TargetName = (typeof names)[number];

/** A running server that is measured. */
export interface Target {
  readonly name: TargetName;
  readonly server: ServerProcess;
  /** The engines that it uses, and no other server meanwhile; absent for one that keeps everything itself. */
  readonly engines?: readonly Engine[];
  /** The value of the Authorization header. */
  readonly authorization: string;
  /** Header lines that authenticate a socket of this user; empty if none are needed. */
  socketHeaders(userId: string): string;
  /** Whether the server greets a socket with a first frame. */
  readonly greets: boolean;
  /** The request (head and body) that sends one event to every socket. */
  eventRequest(threadId: string, event: string): string;
}

/** An HTTP request in its wire format. */
export function rawPost(port: number, path: string, authorization: string, body: string): string {
  const length = Buffer.byteLength(body);
  return `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nAuthorization: ${authorization}\r\nContent-Length: ${length}\r\n\r\n${body}`;
}

/** The request that creates a comment in a thread. */
export function commentPost(port: number, threadId: string, authorization: string): string {
  const body = {
    userId: 'user-1',
    body: 'Could we move this button a little to the left? It hides the total when the window is narrow.',
  };
  return rawPost(port, `/api/v1/threads/${threadId}/comments`, authorization, JSON.stringify(body));
}

/** Header lines with the publishable key and the token. */
export function credentialHeaders(publishableKey: string, token: string): string {
  return `X-Service-Key: ${publishableKey}\r\nX-Service-Token: ${token}\r\n`;
}
