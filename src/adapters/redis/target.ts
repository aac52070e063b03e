import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { messageOf } from '../../lib/thrown.ts';
import { EngineError } from '../../ports/engine-error.ts';

/** The address of one server. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** A Redis or Valkey, as `shared.url` names it. */
export interface Target {
  /** Servers to try in turn: of one installation, nodes of a cluster, or sentinels. */
  readonly endpoints: readonly Endpoint[];
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
  readonly tls: SecureContextOptions | false;
  /** The name of the master that the endpoints, as sentinels, know the address of; undefined if they are no sentinels. */
  readonly sentinel: string | undefined;
  readonly sentinelPassword: string | undefined;
  /**
   * What all keys and channels begin with. It has the number of the database, because channels are those of all
   * databases, and is a hash tag: all keys and channels of an installation are in one slot of a cluster.
   */
  readonly tag: string;
  /** `host:port/database`, for messages. */
  readonly label: string;
  /** Milliseconds until a command must have an answer. */
  readonly answerMs: number;
}

/** `Target.answerMs`, but in tests. */
const ANSWER_MS = 1_500;

const FORM = 'write it as redis://user:password@host:6379/0, with rediss:// for TLS';
const PARTS = /^(redis|rediss|valkey|valkeys):\/\/(?:([^@/?#]*)@)?([^@/?#]*)(?:\/([^@/?#]*))?(?:\?([^@#]*))?$/;
const PARAMETERS = 'prefix, sentinel, sentinelPassword and ca';

/** The refusal of `shared.url`. The message must not have the password. */
export function refusal(message: string, cause?: unknown): EngineError {
  return new EngineError('shared.url', message, { retry: false, cause });
}

/** `host:port`. */
export function addressOf({ host, port }: Endpoint): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/**
 * Parses `redis://user:password@host:port,host:port/database?prefix=…&sentinel=…&sentinelPassword=…&ca=…`. With several
 * hosts, they are nodes of a cluster, or with `sentinel`, the name of the master, its sentinels. `rediss` is with TLS,
 * which `ca` gives the file of a certificate authority for; `valkey` and `valkeys` mean the same.
 *
 * @throws {EngineError} without the password
 */
export function parseTarget(text: string, answerMs: number = ANSWER_MS): Target {
  const [matched, scheme = '', login, hosts = '', path = '', query] = PARTS.exec(text) ?? [];
  if (matched === undefined)
    throw refusal(`the URL cannot be parsed: ${FORM}, and special characters in the password as %XX`);
  const parameters = parametersOf(query ?? '');
  const sentinel = parameters.get('sentinel');
  const endpoints = hosts.split(',').map((host) => endpointOf(host, sentinel === undefined ? 6379 : 26_379));
  if (path !== '' && !/^\d{1,5}$/.test(path))
    throw refusal(`the path of the URL is not the number of a database: ${FORM}`);
  const database = Number(path);
  const prefix = parameters.get('prefix') ?? 'collab';
  if (!/^[\w.:-]{1,64}$/.test(prefix))
    throw refusal('prefix is 1 to 64 of the characters A-Z, a-z, 0-9, "_", ".", ":" and "-"');
  const [username, password] = loginOf(login ?? '');
  return {
    endpoints,
    username,
    password,
    database,
    tls: scheme === 'rediss' || scheme === 'valkeys' ? tlsOf(parameters.get('ca')) : false,
    sentinel,
    sentinelPassword: parameters.get('sentinelPassword'),
    tag: `{${prefix}${database === 0 ? '' : `/${database}`}}`,
    label: `${endpoints.map(addressOf).join()}/${sentinel === undefined ? '' : `${sentinel}/`}${database}`,
    answerMs,
  };
}

function parametersOf(query: string): Map<string, string> {
  const parameters = new Map([...new URLSearchParams(query)].filter(([, value]) => value !== ''));
  for (const name of parameters.keys())
    if (!['prefix', 'sentinel', 'sentinelPassword', 'ca'].includes(name))
      throw refusal(`the URL has the parameter ${name}, which is not supported: ${PARAMETERS} are`);
  return parameters;
}

function endpointOf(text: string, defaultPort: number): Endpoint {
  const [matched, v6, name, port = String(defaultPort)] =
    /^(?:\[([\da-fA-F:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (matched === undefined || Number(port) > 65_535) throw refusal(`the URL names no host, or a wrong port: ${FORM}`);
  return { host: v6 ?? name ?? '', port: Number(port) };
}

function loginOf(text: string): [username: string | undefined, password: string | undefined] {
  const colon = text.indexOf(':');
  try {
    const username = decodeURIComponent(colon === -1 ? text : text.slice(0, colon));
    const password = colon === -1 ? '' : decodeURIComponent(text.slice(colon + 1));
    return [username === '' ? undefined : username, password === '' ? undefined : password];
  } catch {
    throw refusal('the login in the URL has a % that begins no escape: write it as %25');
  }
}

function tlsOf(path: string | undefined): SecureContextOptions {
  if (path === undefined) return {};
  try {
    return { ca: readFileSync(path, 'utf8') };
  } catch (error) {
    throw refusal(`the file that ca names cannot be read: ${messageOf(error)}`, error);
  }
}
